#include "inspect/cli/watch_command.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "core/words.h"
#include "inspect/runs/run_follower.h"
#include "inspect/runs/watch_frame.h"
#include "trainers/report/print.h"

namespace lockstep::trainers {
namespace {

// A signal's number, or 0.
volatile std::sig_atomic_t last_signal = 0;

// Collects the signals that arrive while this lives; they are blocked except in wait().
class WatchSignals {
 public:
  WatchSignals() {
    sigset_t all;
    sigemptyset(&all);
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      sigaddset(&all, kSignals[i]);
      struct sigaction action{};
      action.sa_handler = [](int number) {
        if (last_signal == 0 || last_signal == SIGWINCH) last_signal = number;
      };
      sigaction(kSignals[i], &action, &actions_before_[i]);
    }
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  WatchSignals(const WatchSignals&) = delete;
  WatchSignals& operator=(const WatchSignals&) = delete;
  ~WatchSignals() {
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], &actions_before_[i], nullptr);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  // Returns the signal that came within a second; 0: none.
  int wait() const {
    constexpr timespec kSecond{.tv_sec = 1, .tv_nsec = 0};
    last_signal = 0;
    ppoll(nullptr, 0, &kSecond, &before_);
    return last_signal;
  }

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
  sigset_t before_{};
  struct sigaction actions_before_[std::size(kSignals)] = {};
};

// Switches to the terminal's alternate screen, without a cursor. The destructor restores the first
// one.
class WatchScreen {
 public:
  WatchScreen() { enter(); }
  WatchScreen(const WatchScreen&) = delete;
  WatchScreen& operator=(const WatchScreen&) = delete;
  ~WatchScreen() { leave(); }

  static void show(const std::vector<std::string>& lines) {
    std::string text = "\x1b[H";
    for (size_t i = 0; i < lines.size(); ++i) {
      text += (i == 0 ? "\x1b[2K" : "\r\n\x1b[2K") + lines[i];
    }
    print(stdout, text + "\x1b[J");
  }

  // Stops the process, as Ctrl-Z asks. Returns once it continues.
  static void suspend() {
    leave();
    raise(SIGSTOP);
    enter();
  }

 private:
  static void enter() { print(stdout, "\x1b[?1049h\x1b[?25l"); }
  static void leave() { print(stdout, "\x1b[?25h\x1b[?1049l"); }
};

// The size of the terminal, else that in the variables that shells set, else 80 x 24.
TerminalSize window_size() {
  const auto variable = [](const char* name, int otherwise) {
    const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
    const auto value = parse_int(text == nullptr ? "" : text);
    return value && *value > 0 && *value <= 1000 ? static_cast<int>(*value) : otherwise;
  };
  const std::optional<TerminalSize> window = terminal_size(stdout);
  if (window && window->rows > 0) return *window;
  return {variable("COLUMNS", 80), variable("LINES", 24)};
}

bool is_screen() {
  const char* const terminal = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe)
  return isatty(STDOUT_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

// Follows a run whose directory may have no run.json yet.
class WatchedRun {
 public:
  explicit WatchedRun(const std::string& directory) : directory_(directory), follower_(directory) {}

  void update() {
    ended_ = false;
    if (run_is_starting(directory_)) {
      now_ = nullptr;
      return;
    }
    now_ = &follower_.update();
    ended_ = now_->state != RunState::kRunning;
  }
  bool ended() const { return ended_; }
  std::vector<std::string> frame(bool follows) const {
    if (now_ == nullptr) return {"The run is starting."};
    return watch_frame(*now_,
                       {.size = window_size(), .colors = shows_color(stdout), .follows = follows});
  }

 private:
  std::string directory_;
  RunFollower follower_;
  const ViewedRun* now_ = nullptr;
  bool ended_ = false;
};

// Loops until the run has ended or a signal comes.
void follow(WatchedRun& run) {
  const WatchSignals signals;
  const WatchScreen screen;
  while (!run.ended()) {
    WatchScreen::show(run.frame(true));
    const int signal = signals.wait();
    if (signal == SIGTSTP) {
      WatchScreen::suspend();
    } else if (signal != 0 && signal != SIGWINCH) {
      return;
    }
    run.update();
  }
}

}  // namespace

int run_watch(const std::string& directory, bool once) {
  WatchedRun run(directory);
  run.update();
  if (!once && !run.ended() && is_screen()) follow(run);
  std::string text;
  for (const std::string& line : run.frame(false)) text += line + "\n";
  print(stdout, text);
  return 0;
}

}  // namespace lockstep::trainers
