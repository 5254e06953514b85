// A stream: the device, threads, library plans and scratch memory of a sequence of ops.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/cuda/stream.h"
#include "core/device.h"
#include "core/function_ref.h"
#include "core/tensor.h"

namespace lockstep {
class ThreadPool;  // not exported
}

#pragma GCC visibility push(default)
namespace lockstep {

// Base of what ops keep between calls with the same arguments: library primitives, descriptors.
struct Plan {
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  virtual ~Plan() = default;
};

// Identifies a plan: the op (a string literal) and all that its plan depends on.
struct PlanKey {
  const char* op = nullptr;
  std::array<int64_t, 14> values{};

  bool operator==(const PlanKey& other) const {
    return std::string_view(op) == other.op && values == other.values;
  }
};

// The cost of one op call, as the op declares it.
struct LedgerEntry {
  std::string_view op;
  int64_t flops = 0;
  int64_t bytes = 0;          // inputs read and results written, each once
  int64_t unfused_bytes = 0;  // the same, if each part of a fused op were a separate op
  PlanKey plan = {};          // for library calls that have a plan
};

// Scratch memory of one op call: a part that all workers share and a part for each.
struct Workspace {
  std::byte* shared = nullptr;
  std::byte* workers = nullptr;
  size_t worker_bytes = 0;

  std::byte* of(int worker) const { return workers + static_cast<size_t>(worker) * worker_bytes; }
};

// Ops on one stream run one after the other; on CUDA they are queued, and calls return before they
// run.
// Thread safety: one caller at a time; plan() and workspace() not inside fork().
class Stream {
 public:
  // Requires: threads >= 1. `spin`: see ThreadPool. `priority` is CUDA's. Errors: EnvironmentError
  // for kCuda in a build without CUDA, or when no device was chosen and there is none;
  // EnvironmentError when a thread cannot be started.
  explicit Stream(Device device = Device::kCpu,
                  int threads = 1,
                  bool spin = false,
                  cuda::Priority priority = cuda::Priority::kNormal);
  ~Stream();

  Device device() const { return device_; }
  int threads() const { return threads_; }
  CUstream_st* cuda() const { return cuda_.get(); }  // null off CUDA

  // Waits until all queued work is done. Errors: CudaError when some of it failed.
  void synchronize();

  // Calls body(task, worker) for each task on the stream's threads and waits for all. Tasks are
  // shards, or ranges of elements that are cut so that the order of sums does not depend on the
  // number of threads.
  void fork(int64_t tasks, FunctionRef<void(int64_t task, int worker)> body);

  // The plan for `key`, made by `make` (returning std::unique_ptr<P>) at the first call. P is fixed
  // by key.op.
  template <class P, class Make>
  P& plan(const PlanKey& key, Make&& make) {
    auto found = plans_.find(key);
    if (found == plans_.end()) found = plans_.emplace(key, make()).first;
    return static_cast<P&>(*found->second);
  }

  // Lets the caller choose between implementations of an op: from now on is_chosen(way) is true.
  void choose(const PlanKey& way) { chosen_.insert(way); }
  bool is_chosen(const PlanKey& way) const { return chosen_.contains(way); }

  // Scratch memory, valid until the next call. 64-byte aligned; it grows and never shrinks.
  Workspace workspace(size_t shared_bytes, size_t worker_bytes);
  // The memory behind workspace(); recorded work holds a reference to it.
  const std::shared_ptr<std::byte>& workspace_memory() const { return workspace_; }

  // The dry device's record of every op since the last clear.
  std::vector<LedgerEntry>& ledger() { return ledger_; }

 private:
  struct KeyHash {
    size_t operator()(const PlanKey& key) const;
  };

  Device device_;
  std::shared_ptr<CUstream_st> cuda_;
  int threads_;
  std::unique_ptr<ThreadPool> pool_;
  std::unordered_map<PlanKey, std::unique_ptr<Plan>, KeyHash> plans_;
  std::unordered_set<PlanKey, KeyHash> chosen_;
  std::shared_ptr<std::byte> workspace_;
  size_t workspace_bytes_ = 0;
  std::vector<LedgerEntry> ledger_;
};

}  // namespace lockstep
#pragma GCC visibility pop
