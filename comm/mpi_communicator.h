// Ranks as processes that an MPI launcher started.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "comm/direct_communicator.h"
#include "comm/launch.h"

namespace lockstep::comm {

// MPI between its initialisation and its end; at most one in the life of a process.
class MpiSession {
 public:
  // Errors: EnvironmentError when MPI counts other ranks than the launcher, as it does when the
  // program is started with another MPI's mpirun, and when MPI cannot be set up.
  explicit MpiSession(const Launch& launch);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  // While an exception is under way MPI is left as it is, because MPI_Finalize waits for all peers:
  // the process must then end with die().
  ~MpiSession();

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool shares_cores() const { return shares_cores_; }
  bool unwinding() const;

 private:
  int rank_ = 0;
  int size_ = 1;
  bool shares_cores_;
  int exceptions_;
};

// Owns: the session. Messages are cut into pieces of at most `piece_bytes`, because MPI counts them
// with an int. After an error it is of no more use.
// Thread safety: only for the thread that made the session.
class MpiCommunicator : public DirectCommunicator {
 public:
  explicit MpiCommunicator(std::unique_ptr<MpiSession> session,
                           std::chrono::milliseconds stall_abort = kDefaultStallAbort,
                           size_t piece_bytes = size_t{1} << 30);
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  // Waits for the peers as every call does; when one never comes, ends the process with exit code
  // 75 after saying so, because nobody could catch an error here.
  ~MpiCommunicator() override;

 private:
  struct Requests;

  void exchange(const Operation& operation,
                std::span<const Send> sends,
                std::span<const Receive> receives) override;
  void wait(const Operation& operation);

  std::unique_ptr<MpiSession> session_;
  const std::chrono::milliseconds stall_abort_;
  const size_t piece_bytes_;
  std::unique_ptr<Requests> requests_;
};

}  // namespace lockstep::comm
