#include "trainers/report/stop_request.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/core.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "trainers/report/process.h"

namespace lockstep::trainers {
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
