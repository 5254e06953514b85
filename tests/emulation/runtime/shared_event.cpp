#include "tests/emulation/runtime/shared_event.h"

#include <chrono>
#include <mutex>
#include <thread>

#include "tests/emulation/runtime/state.h"

namespace lockstep::emulation {
namespace {

bool serving = false;  // guarded by the lock; work that runs may call this again

void serve() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const std::unique_lock lock(state().mutex, std::try_to_lock);
    if (lock) run_awaited_work();
  }
}

}  // namespace

std::shared_ptr<SharedEvent> SharedEvent::create(int device) {
  auto pages = SharedPages::create(sizeof(State), device);
  return pages ? std::make_shared<SharedEvent>(std::move(pages)) : nullptr;
}

std::shared_ptr<SharedEvent> SharedEvent::open(const PagesHandle& handle) {
  auto pages = SharedPages::open(handle);
  return pages ? std::make_shared<SharedEvent>(std::move(pages)) : nullptr;
}

void run_awaited_work() {
  if (serving) return;
  serving = true;
  state().events.for_each([](const CUevent_st& event) {
    const bool own = event.shared && !event.imported && event.last;
    if (own && event.shared->has_waiter() && !event.last->passed) {
      state().queues.advance(*event.last);
    }
  });
  serving = false;
}

void start_serving_thread() {
  static std::once_flag once;
  std::call_once(once, [] { std::thread(serve).detach(); });
}

}  // namespace lockstep::emulation
