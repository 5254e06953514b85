// The word in shared memory that ranks wait on. It has a file of its own so that tests/explore can
// replace it with a word that lets a test choose the order of the ranks.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep::comm {

using Word = std::atomic<uint32_t>;

}  // namespace lockstep::comm
