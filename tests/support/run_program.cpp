#include "tests/support/run_program.h"

#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::testing {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1, write = -1;
};

Pipe open_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  return {ends[0], ends[1]};
}

[[noreturn]] void become(const std::vector<std::string>& arguments,
                         const ProgramOptions& options,
                         const Pipe& out,
                         const Pipe& err) {
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(out.write, STDOUT_FILENO);
  dup2(err.write, STDERR_FILENO);
  if (options.respects_modes) {
    for (const int right : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) prctl(PR_CAPBSET_DROP, right);
  }
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(127);
}

// Appends the available bytes; false at the end of the stream.
bool drain(int fd, std::string& text) {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
  return got > 0;
}

// Reads both streams to their end and sends the signal meanwhile; false if the time limit expired.
bool follow(pid_t child, Pipe out, Pipe err, const ProgramOptions& options, ProgramResult& result) {
  const auto start = Clock::now();
  bool signaled = options.signal == 0;
  std::array<pollfd, 2> streams = {pollfd{out.read, POLLIN, 0}, pollfd{err.read, POLLIN, 0}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (std::chrono::duration<double>(Clock::now() - start).count() > options.limit_s) return false;
    poll(streams.data(), streams.size(), 100);
    if (streams[0].revents != 0 && !drain(out.read, result.out)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !drain(err.read, result.err)) streams[1].fd = -1;
    if (!signaled && (count_of(result.out, options.signal_after) > 0 ||
                      count_of(result.err, options.signal_after) > 0)) {
      kill(child, options.signal);
      signaled = true;
    }
  }
  return true;
}

}  // namespace

std::string path_of_program(const std::string& name) {
  return std::string(LOCKSTEP_BIN_DIR) + "/" + name;
}

ProgramResult run_program(std::vector<std::string> arguments, const ProgramOptions& options) {
  const std::string built = path_of_program(arguments[0]);
  if (access(built.c_str(), X_OK) == 0) arguments[0] = built;
  const Pipe out = open_pipe();
  const Pipe err = open_pipe();
  ProgramResult result;
  const auto start = Clock::now();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) become(arguments, options, out, err);
  close(out.write);
  close(err.write);
  const bool in_time = follow(child, out, err, options, result);
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(out.read);
  close(err.read);
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (in_time) {
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return result;
}

ProgramResult run_ranks(int ranks, std::vector<std::string> arguments, ProgramOptions options) {
  const std::string built = path_of_program(arguments[0]);
  if (access(built.c_str(), X_OK) == 0) arguments[0] = built;
  std::vector<std::string> line = {"mpirun", "-np", std::to_string(ranks)};
  line.insert(line.end(), arguments.begin(), arguments.end());
  options.environment.insert({{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                              {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                              {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                              {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                              {"OMPI_MCA_pml", "ob1"},
                              {"OMPI_MCA_btl", "self,vader"},
                              {"OMPI_MCA_plm_rsh_agent", "/bin/false"}});
  return run_program(std::move(line), options);
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace lockstep::testing
