// Ranks that share memory, all controlled by one test.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "comm/operation.h"
#include "comm/shared/shared_communicator.h"
#include "comm/shared/thread_ranks.h"

namespace lockstep::testing {

// A test may make calls that do not wait itself, for one rank after another, to control their
// order.
class RankSet {
 public:
  using MakeHost = std::function<std::unique_ptr<comm::SharedHost>(comm::ThreadGroup&, int rank)>;

  explicit RankSet(int size, const MakeHost& make_host = thread_host) : group_(size) {
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(std::make_unique<comm::SharedCommunicator>(make_host(group_, rank),
                                                                  comm::kDefaultStallAbort));
    }
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  Communicator& operator[](int rank) { return *ranks_[static_cast<size_t>(rank)]; }

  // Calls body(rank) for every rank, each on a thread.
  void together(const std::function<void(int rank)>& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) threads.emplace_back(body, rank);
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<Tensor> allocate(int64_t count, Dtype dtype = Dtype::kF32) {
    std::vector<Tensor> memory(ranks_.size());
    together([&](int rank) {
      memory[static_cast<size_t>(rank)] = (*this)[rank].allocate({count}, dtype);
    });
    return memory;
  }

  static std::unique_ptr<comm::SharedHost> thread_host(comm::ThreadGroup& group, int rank) {
    return std::make_unique<comm::ThreadHost>(group, rank);
  }

 private:
  comm::ThreadGroup group_;
  std::vector<std::unique_ptr<comm::SharedCommunicator>> ranks_;
};

}  // namespace lockstep::testing
