#include "core/stream.h"

#include <functional>

#include "core/allocator.h"
#include "core/round_up.h"
#include "core/thread_pool.h"

namespace lockstep {
namespace {

constexpr size_t kAlignment = 64;  // of workspaces, in bytes

}  // namespace

Stream::Stream(Device device, int threads, bool spin, cuda::Priority priority)
    : device_(device),
      cuda_(device == Device::kCuda ? cuda::make_stream(priority) : nullptr),
      threads_(threads),
      pool_(std::make_unique<ThreadPool>(threads, spin)) {}

Stream::~Stream() = default;

void Stream::fork(int64_t tasks, FunctionRef<void(int64_t task, int worker)> body) {
  pool_->run(tasks, body);
}

void Stream::synchronize() {
  if (cuda_) cuda::synchronize(cuda_.get());
}

Workspace Stream::workspace(size_t shared_bytes, size_t worker_bytes) {
  const size_t shared = round_up(shared_bytes, kAlignment);
  const size_t each = round_up(worker_bytes, kAlignment);
  const size_t wanted = shared + each * static_cast<size_t>(threads());
  if (workspace_bytes_ < wanted) {
    workspace_.reset();  // give the old block back first
    workspace_bytes_ = 0;
    CachingAllocator& allocator = device_ == Device::kCuda ? cuda_workspaces() : cpu_workspaces();
    auto* block = static_cast<std::byte*>(allocator.allocate(wanted));
    workspace_ = std::shared_ptr<std::byte>(
        block, [wanted, &allocator](std::byte* ended) { allocator.free(ended, wanted); });
    workspace_bytes_ = wanted;
  }
  return {.shared = workspace_.get(), .workers = workspace_.get() + shared, .worker_bytes = each};
}

size_t Stream::KeyHash::operator()(const PlanKey& key) const {
  size_t hash = std::hash<std::string_view>{}(key.op);
  for (const int64_t value : key.values) hash = hash * 1000003 + std::hash<int64_t>{}(value);
  return hash;
}

}  // namespace lockstep
