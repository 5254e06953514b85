#include "tests/emulation/fiber.h"

#include <new>

#include <sys/mman.h>

#include "tests/emulation/access_check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace lockstep::emulation {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStackBytes = size_t{256} << 10;
#else
constexpr size_t kStackBytes = size_t{64} << 10;
#endif
constexpr size_t kGuardBytes = 4096;

struct Switch {
  Fiber* from;
  Fiber* to;
};

}  // namespace

Fiber::Fiber(Entry entry) : entry_(entry), bytes_(kStackBytes) {
  void* memory = mmap(nullptr,
                      kGuardBytes + kStackBytes,
                      PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                      -1,
                      0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kGuardBytes, PROT_NONE);
  stack_ = static_cast<std::byte*>(memory) + kGuardBytes;
  bottom_ = stack_;
  // Tops a whole number of pages apart would share few lines of the cache.
  static size_t fibers = 0;
  top_ = stack_ + kStackBytes - fibers++ % 64 * 64;
  ignore_accesses(stack_, kStackBytes);
  reset();
}

void Fiber::reset() {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
  fake_stack_ = nullptr;
  context_ =
      boost::context::detail::make_fcontext(top_, static_cast<size_t>(top_ - stack_), &start);
}

void Fiber::switch_to(Fiber& to) {
  Switch both{this, &to};
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, to.bottom_, to.bytes_);
#endif
  const auto back = boost::context::detail::jump_fcontext(to.context_, &both);
  const auto* arrived = static_cast<Switch*>(back.data);
  arrived->from->context_ = back.fctx;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::start(boost::context::detail::transfer_t from) {
  const Switch both = *static_cast<Switch*>(from.data);
  both.from->context_ = from.fctx;
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (both.from->stack_ == nullptr) {
    both.from->bottom_ = bottom;
    both.from->bytes_ = bytes;
  }
#endif
  both.to->entry_();
  __builtin_unreachable();
}

}  // namespace lockstep::emulation
