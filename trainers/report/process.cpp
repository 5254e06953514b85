#include "trainers/report/process.h"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <system_error>

#include <fmt/chrono.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/cuda/memory.h"
#include "core/digest.h"

namespace lockstep::trainers {
namespace {

// Field 22 of /proc/self/stat, in clock ticks since boot; the name before it may hold blanks.
double start_since_boot() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int i = 3; i < 22; ++i) fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text, '\0');  // unlike a stream's buffer, throws nothing where a read fails
  return text;
}

}  // namespace

std::string utc_text(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", parts);
}

double seconds_since_process_start() {
  static const double start = start_since_boot();
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - start;
}

MemoryPeaks memory_peaks() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {.host = int64_t{usage.ru_maxrss} * 1024,
          .device = static_cast<int64_t>(cuda::peak_bytes())};
}

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

}  // namespace lockstep::trainers
