#include "comm/shared/thread_ranks.h"

#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "comm/shared/shared_communicator.h"
#include "core/error.h"
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

void spawn_ranks(int ranks,
                 const std::function<void(Communicator&)>& body,
                 std::chrono::milliseconds stall_abort) {
  ThreadGroup group(ranks);
  std::mutex mutex;
  std::exception_ptr first_error;
  const auto run_rank = [&](int rank) {
    try {
      SharedCommunicator peers(std::make_unique<ThreadHost>(group, rank), stall_abort);
      body(peers);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first_error) first_error = std::current_exception();
    }
    group.leave(rank);  // after its error is noted: those that it causes come later
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(ranks));
  try {
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, rank);
  } catch (const std::system_error& error) {
    const std::lock_guard lock(mutex);
    first_error = std::make_exception_ptr(
        EnvironmentError(fmt::format("cannot start rank {} as a thread", threads.size()),
                         error.what(),
                         "fewer ranks, or higher limits (ulimit -u, ulimit -v)"));
    for (auto rank = static_cast<int>(threads.size()); rank < ranks; ++rank) group.leave(rank);
  }
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace lockstep::comm
