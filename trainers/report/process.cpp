#include "trainers/report/process.h"

#include <fstream>
#include <sstream>

#include <fmt/chrono.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/cuda/memory.h"

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

}  // namespace lockstep::trainers
