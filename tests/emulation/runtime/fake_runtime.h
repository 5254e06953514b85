// The test interface of the fake CUDA runtime: settings for its devices and for the order of queued
// work, and counts of the calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace lockstep::emulation {

struct FakeDevice {
  std::string name = "emulated device";
  int major = 9, minor = 0;  // compute capability
  int multiprocessors = 4;
  size_t memory_bytes = size_t{1} << 30;
  int number = -1;  // of the machine's devices; -1: its index
};

// At start, the number of devices is LOCKSTEP_EMULATION_DEVICES, by default one, of which
// CUDA_VISIBLE_DEVICES leaves those that it numbers up to the first that is absent, and each has
// LOCKSTEP_EMULATION_MEMORY bytes, by default 1 GiB. LOCKSTEP_EMULATION_DRIVER is absent, too-old
// or broken.
struct FakeMachine {
  int driver_version = CUDART_VERSION;    // 0: no driver
  cudaError_t start_error = cudaSuccess;  // returned by every call
  std::vector<FakeDevice> devices = {FakeDevice{}};
  size_t pinned_bytes = size_t{1} << 30;  // limit of page-locked memory
};

// Resets streams, events, graphs, faults, queued work and counts. Memory is kept, since its owners
// still use it. Only the calling thread's state is reset.
void reset_runtime(const FakeMachine& machine = {});

// When queued work runs. CUDA guarantees only each stream's order and what events and
// synchronization add.
enum class StreamOrder : uint8_t {
  kEager,   // at once: a launch returns its own fault, as with CUDA_LAUNCH_BLOCKING=1; a graph's
            // nodes of the highest priority run first
  kLazy,    // only when somebody waits for it; of a graph's ready nodes the last one runs first
  kRandom,  // some at once, some later, in random order across streams and branches of graphs
};
// The initial order is LOCKSTEP_EMULATION_STREAMS: eager, lazy or random:SEED; eager when unset.
void set_stream_order(StreamOrder order, uint64_t seed = 1);

// Calls since the last reset. Work captured into a graph is counted when the graph is launched.
// LOCKSTEP_EMULATION_COUNTS=FILE: at exit the process appends launches, graph launches,
// synchronizations and the two counts of allocations, in one line.
struct RuntimeCounters {
  int64_t launches = 0;  // of kernels, outside graphs
  int64_t graph_launches = 0;
  int64_t synchronizations = 0;  // host waits, including those for copies and frees
  int64_t allocations = 0;       // of device memory
  int64_t pinned_allocations = 0;
  int64_t copies = 0, copied_bytes = 0;
  int64_t memsets = 0;
  std::map<std::string, int64_t, std::less<>> launches_of;  // by the op that launched them
  std::map<int, int64_t> graph_nodes_at;                    // nodes launched, by priority
  int64_t nccl_launches_elsewhere = 0;  // by a thread other than the one that ended the group
  int64_t uses_of_ended_events = 0;     // of other processes, after these destroyed them
};
extern RuntimeCounters runtime_counters;

// A wait for an event: who waits, and whose event it is. 0 is the host; other numbers are streams,
// in order of creation since the last reset.
struct EventWait {
  int waiter = 0, awaited = 0;
  auto operator<=>(const EventWait&) const = default;
};
// The waits in this process since the last reset.
std::set<EventWait> event_waits();
// Plants a bug until the next reset: this wait is skipped, and the host takes the events it queries
// for complete.
void forget(const EventWait& wait);

size_t device_bytes_in_use(int device = 0);
size_t pinned_bytes_in_use();

}  // namespace lockstep::emulation
