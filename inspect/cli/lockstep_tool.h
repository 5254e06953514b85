// `lockstep`, the tool that inspects what training left.
#pragma once

#include <iosfwd>

namespace lockstep::trainers {

// Returns the exit code: that of core/error.h, and 1 when `diff` finds a difference. `replay`, on
// one rank or more, writes to the standard streams.
int run_lockstep_tool(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace lockstep::trainers
