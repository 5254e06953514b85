// Settings that tests give the fake CUDA runtime, and its counts: which devices there are, in what
// order queued work runs, and what was called.
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
};

// At start there are as many such devices as LOCKSTEP_EMULATION_DEVICES says; one when unset. Each
// has LOCKSTEP_EMULATION_MEMORY bytes; 1 GiB when unset. LOCKSTEP_EMULATION_DRIVER: absent, too-old
// or broken.
struct FakeMachine {
  int driver_version = CUDART_VERSION;    // 0: no driver
  cudaError_t start_error = cudaSuccess;  // what every call returns
  std::vector<FakeDevice> devices = {FakeDevice{}};
  size_t pinned_bytes = size_t{1} << 30;  // that may be page-locked
};

// Forgets streams, events, graphs, faults, queued work and counts. Memory stays: its owners have it
// still. Of threads, the calling one is reset alone.
void reset_runtime(const FakeMachine& machine = {});

// When queued work runs. CUDA promises each stream's order, and what events and synchronizing add.
enum class StreamOrder : uint8_t {
  kEager,   // at once: a launch returns its own fault, as under CUDA_LAUNCH_BLOCKING=1; of a graph
            // the nodes of the highest priority go first
  kLazy,    // only when somebody waits for it; of a graph the last nodes that may run go first
  kRandom,  // some at once, some later; streams and branches of graphs mixed
};
// At start LOCKSTEP_EMULATION_STREAMS says: eager, lazy or random:SEED; eager when unset.
void set_stream_order(StreamOrder order, uint64_t seed = 1);

// Calls since the last reset. What is captured into a graph counts where the graph is launched.
// LOCKSTEP_EMULATION_COUNTS=FILE: at its end a process appends the first five, in one line.
struct RuntimeCounters {
  int64_t launches = 0;  // of kernels, outside graphs
  int64_t graph_launches = 0;
  int64_t synchronizations = 0;  // the host waited, be it in a copy or for memory to be free
  int64_t allocations = 0;       // of device memory
  int64_t pinned_allocations = 0;
  int64_t copies = 0, copied_bytes = 0;
  int64_t memsets = 0;
  std::map<std::string, int64_t, std::less<>> launches_of;  // by the op that asked for them
  std::map<int, int64_t> graph_nodes_at;                    // launched, by their priority
  int64_t nccl_launches_elsewhere = 0;  // by a thread that is not the one that ended the group
};
extern RuntimeCounters runtime_counters;

// Who waits for events of whom: 0 is the host, others are streams, numbered as they were made since
// the last reset.
struct EventWait {
  int waiter = 0, awaited = 0;
  auto operator<=>(const EventWait&) const = default;
};
// Those of this process, made since the last reset.
std::set<EventWait> event_waits();
// A planted bug, until the next reset: nobody waits so, and the host takes what it asks for for
// done.
void forget(const EventWait& wait);

size_t device_bytes_in_use(int device = 0);
size_t pinned_bytes_in_use();

}  // namespace lockstep::emulation
