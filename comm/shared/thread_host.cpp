#include "comm/shared/thread_host.h"

#include <cstring>
#include <new>

#include "core/thread_pool.h"

namespace lockstep::comm {
namespace {

constexpr std::align_val_t kAlignment{64};

Segment new_segment(int size, size_t bytes_per_rank) {
  const size_t stride = (bytes_per_rank + 63) / 64 * 64;
  const size_t bytes = stride * static_cast<size_t>(size);
  auto* memory = static_cast<std::byte*>(::operator new(bytes, kAlignment));
  Segment segment{.memory = std::shared_ptr<void>(
                      memory, [](void* block) { ::operator delete(block, kAlignment); }),
                  .parts = {},
                  .bytes = bytes_per_rank};
  std::memset(memory, 0, bytes);
  for (int rank = 0; rank < size; ++rank) {
    segment.parts.push_back(memory + static_cast<size_t>(rank) * stride);
  }
  return segment;
}

}  // namespace

Segment ThreadGroup::segment(size_t index, size_t bytes_per_rank) {
  const std::lock_guard lock(mutex_);
  if (index == segments_.size()) segments_.push_back({new_segment(size(), bytes_per_rank)});
  Shared& shared = segments_[index];
  ++shared.takers;
  if (shared.takers == size()) return std::move(shared.segment);  // now it belongs to the ranks
  return shared.segment;
}

bool ThreadHost::shares_cores() const {
  return size() > usable_cores();
}

Segment ThreadHost::allocate(size_t bytes_per_rank, const Operation&) {
  return group_.segment(allocated_++, bytes_per_rank);
}

}  // namespace lockstep::comm
