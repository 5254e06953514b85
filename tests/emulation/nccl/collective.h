// An NCCL communicator of the emulated machine, and what its groups of calls do.
#pragma once

#include <cstddef>
#include <memory>
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
  int peer = 0;  // of a broadcast: its root

  size_t bytes() const { return count * (type == ncclFloat32 ? 4 : type == ncclUint8 ? 1 : 2); }
};

// State of a communicator that streams and graphs keep.
struct NcclCommunicator {
  NcclCommunicator(int my_rank, int ranks, const std::string& where)
      : rank(my_rank), size(ranks), world(where) {}

  const int rank, size;
  World world;
  bool aborted = false;
  bool hangs = false;      // its collectives never are ready again
  uint64_t announced = 0;  // operations
};

// Work for streams. It is ready when it heads its stream on every rank: then each has read what it
// sends, and none has written what it receives. Requires: one is under way at a time.
class Collective {
 public:
  Collective(std::shared_ptr<NcclCommunicator> communicator, std::vector<NcclCall> calls)
      : communicator_(std::move(communicator)), calls_(std::move(calls)) {}

  bool ready();
  // Errors: Fault when the ranks' calls do not fit together.
  void run();

 private:
  void write_letter();
  void receive(const NcclCall& call, int to, int before);
  void all_reduce(const NcclCall& call);

  std::shared_ptr<NcclCommunicator> communicator_;
  std::vector<NcclCall> calls_;
  uint64_t number_ = 0;  // 0: not announced
};

}  // namespace lockstep::emulation
