// Reads who started this process, which rank it is and where the ranks meet, before any of them
// communicate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/meeting_place.h"

#pragma GCC visibility push(default)
namespace lockstep::comm {

enum class Launcher : uint8_t {
  kNone,         // started alone
  kOpenMpi,      // mpirun, or srun with Open MPI's variables
  kPmi,          // MPICH's or Intel MPI's mpiexec
  kSlurm,        // srun
  kPmix,         // another PMIx launcher; it does not tell the number of ranks
  kEnvironment,  // RANK and WORLD_SIZE: torchrun, or set by hand
  kByHand,       // rank and number of ranks were given by the user
};

struct Launch {
  Launcher launcher = Launcher::kNone;
  int rank = 0;
  int size = 1;  // 0: only MPI_Init will tell
  int local_rank = 0;
  int local_size = 1;           // on this host; `size`, else 1, where the environment does not say
  bool has_local_rank = false;  // the launcher gave it
  std::optional<MeetingPlace> place = {};  // of ranks that do not meet through MPI

  // False for a lone rank, under mpirun too: then MPI is never initialized.
  bool needs_mpi() const { return launcher != Launcher::kNone && size != 1 && !place; }
};

// Settings of the user, besides those of the launcher.
struct LaunchOptions {
  std::string url = {};  // "tcp://HOST:PORT", "file://PATH", "env://"; "": not given
  std::optional<int> rank = {};
  std::optional<int> size = {};
  std::optional<int> local_rank = {};
};

// `lookup` is getenv or a stand-in for it. The first launcher of the list above that set its
// variables wins, but torchrun wins over one that started it, and RANK and WORLD_SIZE over a Slurm
// step of one task. Options must agree with it, except for rank 0 and size 1: these count nodes in
// PyTorch's main.py and mean nothing under a launcher. A local rank is for ranks whose launcher
// does not give one. Errors: EnvironmentError naming a variable with an invalid value; UsageError
// for options that contradict the launcher or each other.
Launch read_launch(Lookup lookup, const LaunchOptions& options = {});
Launch read_launch(const LaunchOptions& options = {});

// True when the ranks of this host cannot all have a core of their own: waiting ranks must yield.
bool shares_cores(const Launch& launch);

}  // namespace lockstep::comm
#pragma GCC visibility pop
