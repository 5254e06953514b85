// A benchmark on connected ranks, from arguments to exit code.
#pragma once

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

}  // namespace lockstep::bench
