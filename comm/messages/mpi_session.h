// MPI between its initialization and its end.
#pragma once

#include <string>

#include "comm/launch.h"

namespace lockstep::comm {

// At most one in the life of a process.
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

std::string mpi_error_text(int status);  // what MPI calls it
// "Open MPI v4.1.4", before MPI is initialized too; empty in a build without MPI.
std::string mpi_library();

}  // namespace lockstep::comm
