// The ranks of a session as MPI knows them.
#pragma once

#include <mpi.h>

#include "comm/messages/mpi_session.h"

namespace lockstep::comm {

struct MpiSession::World {
  MPI_Comm ranks = MPI_COMM_NULL;
};

}  // namespace lockstep::comm
