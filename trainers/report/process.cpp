#include "trainers/report/process.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <signal.h>
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

namespace {

std::optional<double> time_limit_s;
volatile sig_atomic_t g_requested = 0;
std::atomic<int64_t> g_requested_ms = 0;
static_assert(std::atomic<int64_t>::is_always_lock_free);

int64_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// A batch system may send one request both to the launcher, which forwards it, and to its ranks.
void on_signal(int signal) {
  constexpr int64_t kOneRequestMs = 100;
  if (g_requested == 0) {
    g_requested_ms = milliseconds_now();
    g_requested = 1;
  } else if (signal != SIGUSR1 && milliseconds_now() - g_requested_ms >= kOneRequestMs) {
    _exit(128 + signal);
  }
}

}  // namespace

// oneDNN's matrix products keep a pointer of theirs in the stack pointer, so a signal's frame must
// not lie below it. The main thread handles the signals of the process.
void install_stop_handlers() {
  static std::array<std::byte, size_t{64} << 10> handler_stack;
  const stack_t stack = {
      .ss_sp = handler_stack.data(), .ss_flags = 0, .ss_size = handler_stack.size()};
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);  // a closed pager must not end a training
  sigaction(SIGXFSZ, &ignore, nullptr);  // nor a limit on file sizes: that write fails
}

void stop_after(double seconds) {
  time_limit_s = seconds;
}

bool stop_requested() {
  return g_requested != 0 || (time_limit_s && seconds_since_process_start() >= *time_limit_s);
}

std::string stop_cause() {
  if (g_requested != 0 || !time_limit_s) return "on a signal";
  return fmt::format("at --time-limit {}", *time_limit_s);
}

}  // namespace lockstep::trainers
