// Counts the bytes that tensors on the dry device would take.
#pragma once

#include <cstdint>

namespace lockstep {

struct DryMemory {
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;  // since begin_dry_peak()
};

// Counts of the calling thread's tensors.
DryMemory dry_memory();
// The peak begins anew, at what is in use.
void begin_dry_peak();

}  // namespace lockstep
