#include "trainers/flight/rank_process.h"

#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <system_error>

#include <fmt/core.h>
#include <sys/file.h>

#include "core/digest.h"

namespace lockstep::trainers {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text, '\0');  // unlike a stream's buffer, throws nothing where a read fails
  return text;
}

// The name before it may hold blanks and parentheses.
char letter_of(int pid) {
  const std::string line = text_of(fmt::format("/proc/{}/stat", pid));
  const size_t name = line.rfind(") ");
  if (name == std::string::npos || name + 2 >= line.size()) return kProcessUnknown;
  const char letter = line[name + 2];
  return std::isalpha(static_cast<unsigned char>(letter)) != 0 ? letter : kProcessUnknown;
}

}  // namespace

uint64_t host_of_processes() {
  std::error_code error;
  const std::string place = text_of("/proc/sys/kernel/random/boot_id") +
                            std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  return digest(std::as_bytes(std::span(place)));
}

char process_of(int fd, int pid) {
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return kProcessGone;
  return errno == EWOULDBLOCK ? letter_of(pid) : kProcessUnknown;
}

}  // namespace lockstep::trainers
