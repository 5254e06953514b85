// The word in shared memory that ranks wait on. A file of its own: tests/explore puts a word in its
// place that lets a test choose the order of the ranks.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep::comm {

using Word = std::atomic<uint32_t>;

}  // namespace lockstep::comm
