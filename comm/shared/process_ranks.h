// Makes processes that exchange messages share memory.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/launch.h"
#include "comm/messages/message_communicator.h"
#include "comm/shared/host.h"
#include "comm/shared/socket_mesh.h"
#include "core/communicator.h"

namespace lockstep::comm {

// Segments are memory files of rank 0, which the others get through their sockets: they have no
// name and live as long as someone maps them.
class ProcessHost : public SharedHost {
 public:
  // `mesh` is set up.
  ProcessHost(SocketMesh mesh, bool shares_cores, std::chrono::milliseconds stall_abort)
      : mesh_(std::move(mesh)),
        shares_cores_(shares_cores),
        stall_abort_(stall_abort),
        closed_since_(static_cast<size_t>(mesh_.size())) {}

  int rank() const override { return mesh_.rank(); }
  int size() const override { return mesh_.size(); }
  bool shares_cores() const override { return shares_cores_; }
  Segment allocate(size_t bytes_per_rank, const Operation& operation) override;
  // True some time after the rank's end: the launcher reports the exit code of the rank that it
  // sees ending first, which should be the one that failed.
  bool is_gone(int rank) override;

 private:
  using Clock = std::chrono::steady_clock;

  UniqueFd create(size_t bytes, const Operation& operation) const;
  UniqueFd receive(const Operation& operation) const;

  SocketMesh mesh_;
  const bool shares_cores_;
  const std::chrono::milliseconds stall_abort_;
  std::vector<std::optional<Clock::time_point>> closed_since_;  // as far as it was noticed
};

struct SharedRanks {
  std::unique_ptr<Communicator> ranks;  // null where memory cannot be shared
  std::string problem;                  // why; the same on all ranks
};

// A collective call of `messages`. The result owns `messages` from then on, and ends with their
// last wait for the peers. Where there is no result, the caller keeps `messages`. Errors: those of
// `messages`.
SharedRanks share_memory(std::unique_ptr<MessageCommunicator>& messages,
                         const Launch& launch,
                         std::chrono::milliseconds stall_abort);

}  // namespace lockstep::comm
