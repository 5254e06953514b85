#include "core/thread_pool.h"

#include <algorithm>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <sched.h>

#include "core/check.h"
#include "core/error.h"
#include "core/pause_core.h"

namespace lockstep {
namespace {

// Some tens of microseconds: longer than the serial part between forks. Polling for longer would
// take time from other processes that need the core.
constexpr int kSpins = 2000;

// Returns once `value` differs from `old`.
void wait_for_change(const std::atomic<uint32_t>& value, uint32_t old, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_core();
  }
  value.wait(old, std::memory_order_acquire);
}

void end_threads(std::span<std::thread> threads,
                 std::atomic<bool>& stopping,
                 std::atomic<uint32_t>& round) {
  stopping = true;
  round.fetch_add(1, std::memory_order_release);
  round.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

ThreadPool::ThreadPool(int size, bool spin) : size_(size), spins_(spin ? kSpins : 0) {
  LS_CHECK(size >= 1, "[thread_pool] size: got {}", size);
  if (size > kMaxThreads) {
    throw UsageError(fmt::format("{} threads cannot be started", size),
                     "a stream has one for each core that it uses",
                     fmt::format("at most {} threads", kMaxThreads));
  }
  try {
    for (int worker = 1; worker < size; ++worker) {
      threads_.emplace_back([this, worker] { work(worker); });
    }
  } catch (const std::system_error& error) {
    end_threads(threads_, stopping_, round_);
    throw EnvironmentError(fmt::format("cannot start thread {} of {}", threads_.size() + 2, size),
                           error.what(),
                           "fewer threads, or higher limits (ulimit -u, ulimit -v)");
  }
}

ThreadPool::~ThreadPool() {
  if (fork_.is_in_child()) {
    abandon(threads_);
  } else {
    end_threads(threads_, stopping_, round_);
  }
}

void ThreadPool::run(int64_t tasks, FunctionRef<void(int64_t, int)> body) {
  if (size_ == 1 || tasks <= 1) {
    for (int64_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  fork_.expect_parent("a Stream of several threads");
  body_ = &body;
  tasks_ = tasks;
  pending_.store(static_cast<uint32_t>(size_ - 1), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  run_block(0);
  for (uint32_t left = pending_.load(std::memory_order_acquire); left != 0;
       left = pending_.load(std::memory_order_acquire)) {
    wait_for_change(pending_, left, spins_);
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::run_block(int worker) {
  try {
    const int64_t end = tasks_ * (worker + 1) / size_;
    for (int64_t task = tasks_ * worker / size_; task < end; ++task) (*body_)(task, worker);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void ThreadPool::work(int worker) {
  for (uint32_t seen = 0;;) {
    wait_for_change(round_, seen, spins_);
    ++seen;
    if (stopping_) return;
    run_block(worker);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

int usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return 1;
  return std::max(1, CPU_COUNT(&mask));
}

}  // namespace lockstep
