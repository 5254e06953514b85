#include "engine/observe/rank_process.h"

#include <cctype>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <system_error>

#include <fmt/core.h>
#include <sys/file.h>

#include "core/digest.h"

namespace lockstep {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text, '\0');  // unlike a stream's buffer, throws nothing where a read fails
  return text;
}

}  // namespace

uint64_t host_of_processes() {
  std::error_code error;
  const std::string place = text_of("/proc/sys/kernel/random/boot_id") +
                            std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  return digest(std::as_bytes(std::span(place)));
}

// A killed process closes its sockets before it gives back its locks, so its peers may look in
// between.
char letter_of(int64_t pid) {
  constexpr uint64_t kIsExiting = 0x4;  // PF_EXITING of the kernel, among the flags in "stat"
  const std::string line = text_of(fmt::format("/proc/{}/stat", pid));
  const size_t name = line.rfind(") ");  // the name may hold blanks and parentheses
  if (name == std::string::npos) return kProcessUnknown;
  std::istringstream fields(line.substr(name + 2));
  char letter = kProcessUnknown;
  int64_t ignored = 0;
  uint64_t flags = 0;
  fields >> letter;
  for (int field = 0; field < 5; ++field) fields >> ignored;  // from the parent to its terminal
  fields >> flags;
  if (!fields || std::isalpha(static_cast<unsigned char>(letter)) == 0) return kProcessUnknown;
  if (letter == 'Z' || letter == 'X' || (flags & kIsExiting) != 0) return kProcessGone;
  return letter == 't' ? kProcessStopped : letter;  // by a debugger
}

char process_of(int fd, int pid) {
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return kProcessGone;
  if (errno != EWOULDBLOCK) return kProcessUnknown;
  const bool is_gone = kill(pid, 0) != 0 && errno == ESRCH;  // a child that it left has the lock
  return is_gone ? kProcessGone : letter_of(pid);
}

}  // namespace lockstep
