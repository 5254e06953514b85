// Memory limits, checked before memory is allocated: a file that claims too much is rejected by
// name, and libraries that crash without memory are not called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lockstep {

// Bytes that this process could have at most: the machine's memory, or the limit of its address
// space (ulimit -v) where that is less.
uint64_t max_memory();
// "this process holds 0.9 GiB of address space, its limit is 1.0 GiB (ulimit -v)", or what the
// machine has.
std::string memory_text();

// Errors: EnvironmentError when `bytes`, which `what` takes, exceed max_memory().
void require_memory(uint64_t bytes, const std::string& what);
// Errors: EnvironmentError when the process's limit leaves less than `bytes` of address space.
void require_address_space(size_t bytes, const char* what);

}  // namespace lockstep
