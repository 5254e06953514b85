#include "trainers/loop/stop_signal.h"

#include <initializer_list>

#include <signal.h>
#include <unistd.h>

namespace lockstep::trainers {
namespace {

volatile sig_atomic_t g_requested = 0;

void on_signal(int signal) {
  if (g_requested != 0) _exit(128 + signal);
  g_requested = 1;
}

}  // namespace

void install_stop_handlers() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);  // a closed pager must not end a training
  sigaction(SIGXFSZ, &ignore, nullptr);  // nor a limit on file sizes: that write fails
}

bool stop_requested() {
  return g_requested != 0;
}

}  // namespace lockstep::trainers
