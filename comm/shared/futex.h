// Sleeps on a word of memory that processes share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lockstep::comm {

// Sleeps while `word` holds `seen`, until a wake, for `at_most` at the longest. May return early.
void futex_wait(std::atomic<uint32_t>& word, uint32_t seen, std::chrono::nanoseconds at_most);

void futex_wake_all(std::atomic<uint32_t>& word);

}  // namespace lockstep::comm
