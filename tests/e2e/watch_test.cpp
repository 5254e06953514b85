// lockstep watch beside a real job, in its own terminal.
#include <array>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/training_runs.h"

namespace lockstep::testing::watch_test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// Whether the text has the lowest point of a curve.
bool has_curve(const std::string& text) {
  return count_of(text, "▁") > 0;
}

winsize window(unsigned short rows, unsigned short columns) {
  return {.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
}

// A program with its own terminal.
class Terminal {
 public:
  Terminal(const std::vector<std::string>& arguments, winsize size) {
    std::vector<std::string> words = arguments;
    words.front() = path_of_program(words.front());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ != 0) return;
    setenv("TERM", "xterm", 1);
    execv(argv.front(), argv.data());
    _exit(127);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (!has_ended_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(terminal_);
  }

  void type(char key) const { EXPECT_EQ(write(terminal_, &key, 1), 1); }
  void resize(winsize size) const { EXPECT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0); }

  // Reads for at most half a minute, until a curve was shown or the program has ended.
  bool shows_a_curve() {
    for (int i = 0; i < 300 && !has_curve(shown_); ++i) {
      if (!read_more()) break;
    }
    return has_curve(shown_);
  }
  // Waits for the end of the program and returns its exit code.
  int end() {
    for (int i = 0; i < 300 && read_more(); ++i) continue;
    int status = 0;
    waitpid(pid_, &status, 0);
    has_ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  const std::string& shown() const { return shown_; }
  void forget() { shown_.clear(); }

 private:
  // Waits a tenth of a second. False: the program has closed the terminal.
  bool read_more() {
    pollfd wait{.fd = terminal_, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, 100) <= 0) return true;
    std::array<char, 4096> bytes{};
    const ssize_t count = read(terminal_, bytes.data(), bytes.size());
    if (count <= 0) return false;
    shown_.append(bytes.data(), static_cast<size_t>(count));
    return true;
  }

  pid_t pid_ = -1;
  int terminal_ = -1;
  bool has_ended_ = false;
  std::string shown_;
};

constexpr const char* kSecondScreen = "\x1b[?1049h\x1b[?25l";
constexpr const char* kFirstScreen = "\x1b[?25h\x1b[?1049l";

TEST(Watch, FollowsAJobThatCtrlCLeavesAlone) {
  const TempDir dir;
  const std::string run = (dir / "run").string();
  ProgramResult job;
  std::thread trains([&] {
    job = run_ranks(2,
                    convnet(run, {"--max-steps", "60", "--print-freq", "2", "--threads", "1"}),
                    {.environment = {{"LOCKSTEP_FAULT", "slow:rank=1,ms=60"}}});
  });
  const auto has_figures = [&] { return !read_text(dir / "run" / "metrics.jsonl").empty(); };
  for (int i = 0; i < 600 && !has_figures(); ++i) usleep(50'000);
  {
    Terminal first({"lockstep", "watch", run}, window(24, 100));
    EXPECT_TRUE(first.shows_a_curve()) << first.shown();
    EXPECT_THAT(first.shown(),
                AllOf(HasSubstr(kSecondScreen), HasSubstr("running · convnet on 2 ranks")));
    first.resize(window(20, 40));
    first.forget();
    EXPECT_TRUE(first.shows_a_curve()) << "drawn again for the new window";
    first.type('\x03');
    EXPECT_EQ(first.end(), 0) << first.shown();
    EXPECT_THAT(first.shown(), AllOf(HasSubstr(kFirstScreen), EndsWith("The run goes on.\r\n")));
  }
  Terminal second({"lockstep", "watch", run}, window(24, 80));
  EXPECT_EQ(second.end(), 0) << second.shown();
  EXPECT_THAT(second.shown(), HasSubstr("The run has ended: done, "));
  trains.join();
  EXPECT_EQ(job.exit_code, 0) << said(job);
  EXPECT_EQ(read_metrics(dir / "run").back().at("step"), 60);
}

TEST(Watch, PrintsOnePictureWhereThereIsNoTerminal) {
  const TempDir dir;
  ASSERT_EQ(run_program(convnet(dir / "run")).exit_code, 0);
  const ProgramResult one = run_program({"lockstep", "watch", (dir / "run").string()});
  EXPECT_EQ(one.exit_code, 0) << said(one);
  EXPECT_THAT(one.out, AllOf(HasSubstr("step 20 of 20"), Not(HasSubstr("\x1b"))));
  EXPECT_TRUE(has_curve(one.out)) << one.out;
  EXPECT_THAT(one.out, HasSubstr("The run has ended: done, "));
  Terminal ended({"lockstep", "watch", (dir / "run").string()}, window(24, 80));
  EXPECT_EQ(ended.end(), 0);
  EXPECT_THAT(ended.shown(), AllOf(HasSubstr("done"), Not(HasSubstr(kSecondScreen))));
  const ProgramResult none = run_program({"lockstep", "watch", (dir / "none").string()});
  EXPECT_EQ(none.exit_code, 5);
  EXPECT_EQ(count_of(none.err, "there is no run in "), 1) << none.err;
}

}  // namespace
}  // namespace lockstep::testing::watch_test
