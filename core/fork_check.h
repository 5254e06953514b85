// Refuses the use of threads in a forked child, which has none of its parent's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <thread>

namespace lockstep {

// Each owner of threads has one. Thread safety: as of a constant.
class ForkCheck {
 public:
  ForkCheck();

  // Whether the process was forked after this object was made, and this is the child.
  bool is_in_child() const;
  // Errors: UsageError in the child. `owner`: "a Stream".
  void expect_parent(std::string_view owner) const;

 private:
  uint64_t forks_;
};

// For destructors in the child, where neither join() nor detach() finds the threads: forgets them.
inline void abandon(std::span<std::thread> threads) {
  for (std::thread& thread : threads) std::construct_at(&thread);
}

}  // namespace lockstep
