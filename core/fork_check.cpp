#include "core/fork_check.h"

#include <atomic>

#include <fmt/core.h>
#include <pthread.h>

#include "core/error.h"

namespace lockstep {
namespace {

// From the first process on to this one. Counting in the child costs no system call per check.
std::atomic<uint64_t>& forks() {
  static std::atomic<uint64_t> count = 0;
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return count;
}

}  // namespace

ForkCheck::ForkCheck() : forks_(forks()) {}

bool ForkCheck::is_in_child() const {
  return forks() != forks_;
}

void ForkCheck::expect_parent(std::string_view owner) const {
  if (!is_in_child()) return;
  throw UsageError(fmt::format("{} was made before this process was forked", owner),
                   "its threads and its connections stay with the parent",
                   "make it after fork(), or use it in the parent");
}

}  // namespace lockstep
