// Stacks that take turns on one host thread.
#pragma once

#include <cstddef>

#include <boost/context/detail/fcontext.hpp>

namespace lockstep::emulation {

// Tells AddressSanitizer about each switch. Thread safety: one host thread at a time.
class Fiber {
 public:
  using Entry = void (*)();

  Fiber() = default;  // the host thread's own stack
  // A fiber with its own stack and a guard page below it. `entry` must not return.
  explicit Fiber(Entry entry);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Continues in `to`, which must be suspended or new. Returns when another fiber switches back to
  // this one.
  void switch_to(Fiber& to);
  // Discards the suspended state: the next switch starts the fiber from the beginning.
  void reset();

 private:
  static void start(boost::context::detail::transfer_t from);

  Entry entry_ = nullptr;
  std::byte* stack_ = nullptr;
  std::byte* top_ = nullptr;
  boost::context::detail::fcontext_t context_{};
  const void* bottom_ = nullptr;  // for AddressSanitizer
  size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace lockstep::emulation
