// Random numbers that nobody can guess.
#pragma once

#include <cstdint>

namespace lockstep::comm {

// Errors: EnvironmentError.
uint64_t random_number();

}  // namespace lockstep::comm
