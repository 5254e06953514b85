// The communicator of a lone rank, which has no peers.
#pragma once

#include <algorithm>
#include <cstring>

#include "comm/operation.h"
#include "core/communicator.h"
#include "core/error.h"

namespace lockstep::comm {

class SingleCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  void barrier() override {}
  void broadcast(std::span<std::byte>, int root) override { check_root(root, 1); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    check_all_gather(mine.size(), all.size(), 1);
    if (!mine.empty()) std::memmove(all.data(), mine.data(), mine.size());
  }
  std::unique_ptr<Work> start_all_reduce(const AllReduce& what) override {
    if (what.algorithm != Algorithm::kNone) {
      traffic_.reduced_bytes += static_cast<int64_t>(what.values.nbytes());
    }
    return std::make_unique<DoneWork>();
  }
  void all_reduce_sum(std::span<float>) override {}
  void all_reduce_sum(std::span<int64_t>) override {}
};

}  // namespace lockstep::comm
