#include "comm/thread_communicator.h"

#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "comm/shared/shared_communicator.h"
#include "comm/shared/thread_host.h"

namespace lockstep::comm {

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
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run_rank, rank);
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace lockstep::comm
