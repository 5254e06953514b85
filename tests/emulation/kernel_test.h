// Runs kernels directly on the machine, without a runtime, for tests of the machine itself.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/emulation/access_check.h"
#include "tests/emulation/engine.h"

namespace lockstep::emulation {

#if defined(__SANITIZE_THREAD__)
constexpr bool kAccessesAreChecked = true;
#else
constexpr bool kAccessesAreChecked = false;
#endif

// Device memory with these values.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::vector<T> values) : values_(std::move(values)) {
    permit(values_.data(), bytes(), Memory::kDevice);
    note_written(values_.data(), bytes());
  }
  // Memory that was never written.
  explicit Buffer(size_t count) : values_(count) {
    permit(values_.data(), bytes(), Memory::kDevice);
  }
  ~Buffer() { withdraw(values_.data()); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() { return values_.data(); }
  const std::vector<T>& values() const { return values_; }

 private:
  size_t bytes() const { return values_.size() * sizeof(T); }
  std::vector<T> values_;
};

struct Shape {
  dim3 grid, block;
  size_t dynamic_shared_bytes = 0;
};

// Errors: Fault.
template <class... Parameters, class... Arguments>
void run_kernel(const Shape& shape, void (*kernel)(Parameters...), Arguments... arguments) {
  struct Held {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> values;
  };
  const auto held = std::make_shared<Held>(Held{kernel, {arguments...}});
  const Call call{.arguments = held,
                  .argument_bytes = sizeof(Held),
                  .invoke =
                      [](void* memory) {
                        auto& self = *static_cast<Held*>(memory);
                        std::apply(self.kernel, self.values);
                      },
                  .kernel = reinterpret_cast<const void*>(kernel),
                  .name = "kernel"};
  run_grid(call, shape.grid, shape.block, shape.dynamic_shared_bytes);
}

// Returns the text of the error that stops the kernel; empty if there is none.
template <class... Parameters, class... Arguments>
std::string fault_of(const Shape& shape, void (*kernel)(Parameters...), Arguments... arguments) {
  try {
    run_kernel(shape, kernel, arguments...);
    return "";
  } catch (const Fault& fault) {
    return fault.what();
  }
}

// "file.cu:12" for line 12 of this file.
#define EMULATED_LINE(line) \
  (std::string(std::strrchr("/" __FILE__, '/') + 1) + ":" + std::to_string(line))

// Sets the schedule for a test and restores the previous one at the end.
class ScopedSchedule {
 public:
  explicit ScopedSchedule(Schedule chosen) : before_(schedule) {
    schedule = chosen;
    counters = {};
  }
  ~ScopedSchedule() { schedule = before_; }
  ScopedSchedule(const ScopedSchedule&) = delete;
  ScopedSchedule& operator=(const ScopedSchedule&) = delete;

 private:
  Schedule before_;
};

inline std::vector<Schedule> every_order() {
  return {{.order = Order::kForward},
          {.order = Order::kReverse},
          {.order = Order::kRandom, .seed = 1},
          {.order = Order::kRandom, .seed = 2}};
}

}  // namespace lockstep::emulation
