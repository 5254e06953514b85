#include "tests/emulation/runtime/state.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/emulation/engine.h"

namespace lockstep::emulation {

RuntimeCounters runtime_counters;

namespace {

void order_from_environment() {
  const char* const text = std::getenv("LOCKSTEP_EMULATION_STREAMS");
  const std::string order = text == nullptr ? "eager" : text;
  if (order == "eager") return set_stream_order(StreamOrder::kEager);
  if (order == "lazy") return set_stream_order(StreamOrder::kLazy);
  if (order.starts_with("random:")) {
    return set_stream_order(StreamOrder::kRandom, std::strtoull(order.c_str() + 7, nullptr, 10));
  }
  std::fprintf(stderr, "LOCKSTEP_EMULATION_STREAMS=%s: use eager, lazy or random:SEED\n", text);
  std::exit(2);
}

void devices_from_environment() {
  FakeDevice device;
  if (const char* const bytes = std::getenv("LOCKSTEP_EMULATION_MEMORY")) {
    device.memory_bytes = std::strtoull(bytes, nullptr, 10);
  }
  const char* const devices = std::getenv("LOCKSTEP_EMULATION_DEVICES");
  const size_t count = devices == nullptr ? 1 : std::strtoul(devices, nullptr, 10);
  std::vector<FakeDevice>& visible = state().machine.devices;
  visible.assign(count, device);
  for (size_t i = 0; i < count; ++i) visible[i].number = static_cast<int>(i);
  const char* const mask = std::getenv("CUDA_VISIBLE_DEVICES");
  if (mask == nullptr) return;
  const std::vector<FakeDevice> all = std::exchange(visible, {});
  std::istringstream numbers(mask);
  for (size_t number; numbers >> number && number < all.size(); numbers.ignore(1, ',')) {
    visible.push_back(all[number]);
  }
}
void driver_from_environment() {
  const char* const text = std::getenv("LOCKSTEP_EMULATION_DRIVER");
  if (text == nullptr) return;
  FakeMachine& machine = state().machine;
  const std::string driver = text;
  if (driver == "absent") {
    machine.driver_version = 0;
  } else if (driver == "too-old") {
    machine.driver_version = 11080;
  } else if (driver == "broken") {
    machine.start_error = cudaErrorSystemNotReady;
  } else {
    std::fprintf(stderr, "LOCKSTEP_EMULATION_DRIVER=%s: use absent, too-old or broken\n", text);
    std::exit(2);
  }
}
// Appends one line per process, since all ranks write to the same file.
void write_counts() {
  std::FILE* const file = std::fopen(std::getenv("LOCKSTEP_EMULATION_COUNTS"), "a");
  if (file == nullptr) std::_Exit(5);
  const RuntimeCounters& all = runtime_counters;
  std::fprintf(file,
               "%ld %ld %ld %ld %ld\n",
               all.launches,
               all.graph_launches,
               all.synchronizations,
               all.allocations,
               all.pinned_allocations);
  std::fclose(file);
}
void counts_from_environment() {
  if (std::getenv("LOCKSTEP_EMULATION_COUNTS") != nullptr) std::atexit(write_counts);
}
[[maybe_unused]] const bool kEnvironmentRead = (order_from_environment(),
                                                devices_from_environment(),
                                                driver_from_environment(),
                                                counts_from_environment(),
                                                true);

}  // namespace

State& state() {
  static State& state = *new State;  // outlives every static object that frees memory
  return state;
}

ThreadState& this_thread() {
  thread_local ThreadState thread;
  return thread;
}

void reset_runtime(const FakeMachine& machine) {
  const std::lock_guard lock(state().mutex);
  state().machine = machine;
  state().sticky = cudaSuccess;
  state().queues.clear();
  state().events.clear();
  state().graphs.clear();
  state().executables.clear();
  state().event_waits.clear();
  state().forgotten.clear();
  this_thread() = {};
  runtime_counters = {};
}

std::set<EventWait> event_waits() {
  const std::lock_guard lock(state().mutex);
  return state().event_waits;
}

void forget(const EventWait& wait) {
  const std::lock_guard lock(state().mutex);
  state().forgotten.insert(wait);
}

void set_stream_order(StreamOrder order, uint64_t seed) {
  const std::lock_guard lock(state().mutex);
  state().queues.set_order(order, seed);
}

size_t device_bytes_in_use(int device) {
  const std::lock_guard lock(state().mutex);
  return state().heap.device_bytes(device);
}

size_t pinned_bytes_in_use() {
  const std::lock_guard lock(state().mutex);
  return state().heap.pinned_bytes();
}

cudaError_t refusal() {
  const FakeMachine& machine = state().machine;
  if (state().in_host_function) return cudaErrorNotPermitted;
  if (machine.driver_version < CUDART_VERSION / 1000 * 1000) return cudaErrorInsufficientDriver;
  if (machine.start_error != cudaSuccess) return machine.start_error;
  return machine.devices.empty() ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t returned(cudaError_t status) {
  if (state().sticky != cudaSuccess) status = state().sticky;
  if (status != cudaSuccess) this_thread().last = status;
  return status;
}

void run_on_device(const std::function<void()>& work) {
  if (state().sticky != cudaSuccess) return;
  try {
    work();
  } catch (const Fault& fault) {
    std::fprintf(stderr, "emulated device fault: %s\n", fault.what());
    state().sticky = cudaErrorLaunchFailure;
  }
}

}  // namespace lockstep::emulation
