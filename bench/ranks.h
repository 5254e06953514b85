// Runs a benchmark on connected ranks, from its arguments to its exit code, and prints on one of
// them.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "comm/connect.h"

namespace lockstep::bench {

struct RanksRequest {
  comm::ConnectOptions connect;
  std::string help;  // not empty: to be printed instead of measuring
};

// Calls request(), then measure() on connected ranks that were given the same arguments, and
// returns the process exit code. Errors of request() leave nothing behind; those of measure() end
// the process. `arguments`: without the program's name.
int run_on_ranks(const std::vector<std::string>& arguments,
                 const std::function<RanksRequest()>& request,
                 const std::function<void(const comm::Launch&, const comm::Connection&)>& measure);

// Prints lines at once, so that a reader sees each when it is measured.
class Printer {
 public:
  // A null file makes it silent, as it is on all ranks but one.
  explicit Printer(std::FILE* file) : file_(file) {}

  void print(const std::string& text) const {
    if (file_ == nullptr) return;
    std::fputs(text.c_str(), file_);
    std::fflush(file_);
  }

 private:
  std::FILE* file_;
};

}  // namespace lockstep::bench
