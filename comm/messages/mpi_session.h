// MPI from its initialization to its end.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "comm/launch.h"

namespace lockstep::comm {

// Uses the MPI that the program has started already, and leaves it running; else starts it, once in
// the life of a process, and ends it with the last session. Its messages travel apart from the
// program's own and from other sessions'.
class MpiSession {
 public:
  // A collective call. Errors: EnvironmentError when MPI counts other ranks than the launcher, as
  // it does when the program is started with another MPI's mpirun, and when MPI cannot be set up;
  // UsageError when it has ended already.
  explicit MpiSession(const Launch& launch);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  // During an exception, and after abandon(), MPI is left as it is, because MPI_Finalize waits for
  // all peers.
  ~MpiSession();

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool shares_cores() const { return shares_cores_; }
  bool unwinding() const;
  // The peers may be gone: the end of the session waits for nobody.
  void abandon() { abandoned_ = true; }

  struct World;  // comm/messages/mpi_world.h
  // For a call of MPI. Errors: UsageError after the program's MPI_Finalize, and for another thread
  // than that which made the session, unless MPI serves all threads.
  const World& world() const;

 private:
  std::unique_ptr<World> world_;
  std::thread::id thread_;
  int rank_ = 0;
  int size_ = 1;
  bool shares_cores_;
  bool serves_all_threads_ = false;
  bool abandoned_ = false;
  int exceptions_;
};

std::string mpi_error_text(int status);  // what MPI calls it
// "Open MPI v4.1.4", before MPI is initialized too; empty in a build without MPI.
std::string mpi_library();

}  // namespace lockstep::comm
