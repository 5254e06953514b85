// Runs programs as users run them: arguments in, exit code and output out.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lockstep::testing {

struct ProgramResult {
  int exit_code = -1;  // 128 + signal if a signal ended it; -1 if the time limit did
  std::string out;
  std::string err;
  double seconds = 0;
};

struct ProgramOptions {
  std::map<std::string, std::string> environment = {};  // added to this process's environment
  double limit_s = 100;
  int signal = 0;  // sent once `signal_after` shows in the output; 0: none
  std::string signal_after = {};
  bool respects_modes = false;  // also as root, by dropping its right to ignore file modes
};

// arguments[0] is the program: a path, or a name in the build's bin/ or on PATH.
ProgramResult run_program(std::vector<std::string> arguments, const ProgramOptions& options = {});

// Runs `ranks` ranks under mpirun with oversubscription; this also works as root.
ProgramResult run_ranks(int ranks, std::vector<std::string> arguments, ProgramOptions options = {});

// Returns the path of a program in the build's bin/.
std::string path_of_program(const std::string& name);

// The number of times that `part` occurs in `text`.
int count_of(const std::string& text, const std::string& part);

}  // namespace lockstep::testing
