// Fork and join over a fixed set of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/fork_check.h"
#include "core/function_ref.h"

namespace lockstep {

inline constexpr int kMaxThreads = 1024;  // of a pool; also ranks that are threads

// The caller is worker 0; size - 1 threads wait for work. Of n tasks, worker w runs [floor(n w /
// size), floor(n (w + 1) / size)), so a task runs on the same thread, with its caches, in every
// fork.
// Thread safety: run() from one thread at a time; it is not reentrant.
class ThreadPool {
 public:
  // Requires: size >= 1. `spin` lets idle workers poll for some tens of microseconds before they
  // sleep, which is worth it only if each worker has a core to itself. Errors: UsageError for
  // more than kMaxThreads; EnvironmentError when a thread cannot be started.
  ThreadPool(int size, bool spin);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  // Calls body(task, worker) for every task in [0, tasks) and returns when all are done. The first
  // exception is rethrown here. Errors: UsageError in a forked child of the process that made the
  // pool.
  void run(int64_t tasks, FunctionRef<void(int64_t task, int worker)> body);

 private:
  void work(int worker);
  void run_block(int worker);

  const int size_;
  const int spins_;
  const ForkCheck fork_;
  std::vector<std::thread> threads_;
  const FunctionRef<void(int64_t, int)>* body_ = nullptr;
  int64_t tasks_ = 0;
  std::atomic<uint32_t> round_ = 0;
  std::atomic<uint32_t> pending_ = 0;
  std::atomic<bool> stopping_ = false;
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

// Cores this process may run on (its affinity mask), at least 1.
int usable_cores();

}  // namespace lockstep
