// Flags of nccl-tests that have no counterpart here: accepted where they change nothing.
#pragma once

#include <span>
#include <string_view>

namespace lockstep::bench {

struct ForeignOption {
  std::string_view names;    // "-t,--nthreads"
  std::string_view neutral;  // the value that changes nothing here; empty: all of them
  std::string_view why;      // what stands against the others
  std::string_view instead;
};

std::span<const ForeignOption> foreign_options();

// Errors: UsageError when the value would change something.
void check_foreign_option(const ForeignOption& option, std::string_view value);

}  // namespace lockstep::bench
