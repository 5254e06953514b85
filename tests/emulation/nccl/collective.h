// An NCCL communicator of the emulated machine, and the execution of its groups of calls.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nccl.h>

#include "tests/emulation/nccl/world.h"

namespace lockstep::emulation {

// One call of a group.
struct NcclCall {
  enum class Kind : uint8_t { kSend, kReceive, kBroadcast, kAllReduce };
  Kind kind;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  int peer = 0;  // the root, for a broadcast

  size_t bytes() const { return count * (type == ncclFloat32 ? 4 : type == ncclUint8 ? 1 : 2); }
};

// The state of a communicator. Work in streams and graphs shares ownership of it.
struct NcclCommunicator {
  NcclCommunicator(int my_rank, int ranks, const std::string& where)
      : rank(my_rank), size(ranks), world(where) {}

  const int rank, size;
  World world;
  bool aborted = false;
  bool hangs = false;      // its collectives never become ready
  uint64_t announced = 0;  // number of operations
};

// A group of calls as work in a stream. It is ready once it is at the head of its stream on every
// rank: then each rank has published what it sends, and none has written what it receives.
// Requires: only one is in progress at a time.
class Collective {
 public:
  Collective(std::shared_ptr<NcclCommunicator> communicator, std::vector<NcclCall> calls)
      : communicator_(std::move(communicator)), calls_(std::move(calls)) {}

  bool ready();
  // Errors: Fault if the ranks' calls do not match.
  void run();

 private:
  void write_messages();
  void receive(const NcclCall& call, int to, int before);
  void all_reduce(const NcclCall& call, std::span<const int> before);

  std::shared_ptr<NcclCommunicator> communicator_;
  std::vector<NcclCall> calls_;
  uint64_t number_ = 0;  // 0: not announced
};

}  // namespace lockstep::emulation
