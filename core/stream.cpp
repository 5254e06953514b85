#include "core/stream.h"

#include <functional>

namespace lockstep {
namespace {

size_t rounded_up(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

Stream::Stream(Device device, int threads, bool spin, cuda::Priority priority)
    : device_(device),
      cuda_(device == Device::kCuda ? cuda::make_stream(priority) : nullptr),
      pool_(threads, spin) {}

void Stream::synchronize() {
  if (cuda_) cuda::synchronize(cuda_.get());
}

Workspace Stream::workspace(size_t shared_bytes, size_t worker_bytes) {
  const size_t shared = rounded_up(shared_bytes);
  const size_t each = rounded_up(worker_bytes);
  const size_t wanted = shared + each * static_cast<size_t>(threads());
  if (!workspace_.defined() || workspace_.nbytes() < wanted) {
    workspace_ = Tensor();  // give the old block back first
    workspace_ = Tensor::empty({static_cast<int64_t>(wanted)}, Dtype::kU8, device_);
  }
  return {
      .shared = workspace_.bytes(), .workers = workspace_.bytes() + shared, .worker_bytes = each};
}

size_t Stream::KeyHash::operator()(const PlanKey& key) const {
  size_t hash = std::hash<std::string_view>{}(key.op);
  for (const int64_t value : key.values) hash = hash * 1000003 + std::hash<int64_t>{}(value);
  return hash;
}

}  // namespace lockstep
