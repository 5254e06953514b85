// Stacks that take turns on one host thread.
#pragma once

#include <cstddef>

#include <boost/context/detail/fcontext.hpp>

namespace lockstep::emulation {

// Switches are announced to AddressSanitizer. Thread safety: one host thread at a time.
class Fiber {
 public:
  using Entry = void (*)();

  Fiber() = default;  // the host thread's own stack
  // A stack of its own with a guard page below. `entry` must not return.
  explicit Fiber(Entry entry);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Goes on in `to`, which must be suspended or new; returns when somebody switches back here.
  void switch_to(Fiber& to);
  // Forgets where it stood: the next switch starts it again.
  void reset();

 private:
  static void start(boost::context::detail::transfer_t from);

  Entry entry_ = nullptr;
  std::byte* stack_ = nullptr;
  boost::context::detail::fcontext_t context_{};
  const void* bottom_ = nullptr;  // for AddressSanitizer
  size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace lockstep::emulation
