// Checks the names of LOCKSTEP_* variables: a misspelled one would be ignored, and the run would
// differ from what was asked for.
#pragma once

namespace lockstep::trainers {

// `variables`: "NAME=value" each, null at the end, as `environ` has them. Errors: UsageError, with
// the nearest name, for a LOCKSTEP_* that neither a flag, the library, a script nor a test reads.
void check_variables(const char* const* variables);

}  // namespace lockstep::trainers
