// How much memory there is, asked before it is taken: memory that a file claims is refused by name,
// and libraries that crash without memory are not called.
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

// Errors: EnvironmentError where `what` takes more bytes than max_memory().
void require_memory(uint64_t bytes, const std::string& what);
// Errors: EnvironmentError where the process may not have so many bytes of address space more.
void require_address_space(size_t bytes, const char* what);

}  // namespace lockstep
