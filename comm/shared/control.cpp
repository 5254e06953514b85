#include "comm/shared/control.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lockstep::comm {

static_assert(sizeof(Word) == sizeof(uint32_t));
static_assert(Word::is_always_lock_free);

// Not FUTEX_PRIVATE_FLAG: the sleeper may be another process.
void futex_wait(Word& word, uint32_t seen, std::chrono::nanoseconds at_most) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  const timespec timeout = {.tv_sec = seconds.count(), .tv_nsec = (at_most - seconds).count()};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void futex_wake_all(Word& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace lockstep::comm
