#include "comm/launch.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "core/error.h"
#include "core/thread_pool.h"
#include "core/words.h"

namespace lockstep::comm {
namespace {

using Lookup = FunctionRef<const char*(const char*)>;

// Null where a launcher has no such variable. SLURM_NTASKS would be wrong: a batch script that
// starts the program without srun has it, too.
struct Variables {
  Launcher launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
constexpr Variables kLaunchers[] = {
    {Launcher::kOpenMpi,
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {Launcher::kPmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {Launcher::kSlurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr},
    {Launcher::kPmix, "PMIX_RANK", nullptr, nullptr, nullptr},
    {Launcher::kTorchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
};

bool is_set(Lookup lookup, const char* name) {
  return name == nullptr || lookup(name) != nullptr;
}

// The variable's value, in [low, high]; nothing when it is not set.
std::optional<int> number(Lookup lookup, const char* name, int low, int high) {
  const char* text = name == nullptr ? nullptr : lookup(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view view = text;
  int value = 0;
  const auto [end, status] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (status != std::errc() || end != view.data() + view.size() || value < low || value > high) {
    throw EnvironmentError(fmt::format("the launcher's variable {} makes no sense", name),
                           fmt::format("got \"{}\", expected {}..{}", printable(view), low, high),
                           fmt::format("start with mpirun, or unset {}", name));
  }
  return value;
}

}  // namespace

Launch read_launch(Lookup lookup) {
  constexpr int kMost = std::numeric_limits<int>::max();
  for (const Variables& names : kLaunchers) {
    if (!is_set(lookup, names.rank) || !is_set(lookup, names.size)) continue;
    Launch launch{.launcher = names.launcher};
    launch.size = number(lookup, names.size, 1, kMost).value_or(0);
    const int ranks = launch.size == 0 ? kMost : launch.size;
    launch.rank = number(lookup, names.rank, 0, ranks - 1).value_or(0);
    launch.local_size =
        number(lookup, names.local_size, 1, ranks).value_or(launch.size == 0 ? 1 : launch.size);
    launch.local_rank = number(lookup, names.local_rank, 0, ranks - 1).value_or(launch.rank);
    return launch;
  }
  return {};
}

Launch read_launch() {
  return read_launch([](const char* name) -> const char* { return std::getenv(name); });
}

bool shares_cores(const Launch& launch) {
  return launch.size == 0 || launch.local_size > usable_cores();
}

}  // namespace lockstep::comm
