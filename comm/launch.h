// Reads what the launcher's environment says about this process, before any MPI call.
#pragma once

#include <cstdint>

#include "core/function_ref.h"

namespace lockstep::comm {

enum class Launcher : uint8_t {
  kNone,      // started by hand
  kOpenMpi,   // mpirun, or srun with Open MPI's variables
  kPmi,       // MPICH's or Intel MPI's mpiexec
  kSlurm,     // srun
  kPmix,      // another PMIx launcher; it does not tell the number of ranks
  kTorchrun,  // starts no MPI job
};

struct Launch {
  Launcher launcher = Launcher::kNone;
  int rank = 0;
  int size = 1;  // 0: only MPI_Init will tell
  int local_rank = 0;
  int local_size = 1;  // on this host; `size`, else 1, where the environment does not say

  // False for a lone rank, under mpirun too: then MPI is never initialized.
  bool needs_mpi() const { return launcher != Launcher::kNone && size != 1; }
};

// `lookup` is getenv or stands in for it. The first launcher of the list above that set its
// variables wins. Errors: EnvironmentError naming a variable whose value makes no sense.
Launch read_launch(FunctionRef<const char*(const char* name)> lookup);
Launch read_launch();

// True when the ranks of this host cannot all have a core of their own: waiting ranks must yield.
bool shares_cores(const Launch& launch);

}  // namespace lockstep::comm
