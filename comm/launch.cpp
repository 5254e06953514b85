#include "comm/launch.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include <fmt/core.h>

#include "core/error.h"
#include "core/thread_pool.h"
#include "core/words.h"

namespace lockstep::comm {
namespace {

constexpr int kMaxRanks = std::numeric_limits<int>::max();

// Null where a launcher has no such variable. SLURM_NTASKS would be wrong, because a batch script
// that starts the program without srun has it too.
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
    {Launcher::kEnvironment, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
};

bool is_set(Lookup lookup, const char* name) {
  return name == nullptr || lookup(name) != nullptr;
}

// Returns the variable's value, in [low, high]; nothing when it is not set.
std::optional<int> number(Lookup lookup, const char* name, int low, int high) {
  const char* text = name == nullptr ? nullptr : lookup(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view view = text;
  int value = 0;
  const auto [end, status] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (status != std::errc() || end != view.data() + view.size() || value < low || value > high) {
    throw EnvironmentError(fmt::format("the launcher's variable {} makes no sense", name),
                           fmt::format("got \"{}\", expected {}..{}", printable(view), low, high),
                           fmt::format("start with mpirun or torchrun, or unset {}", name));
  }
  return value;
}

// Refuses one of the two variables that are set by hand without the other: each rank would train
// alone.
void refuse_half(std::optional<int> rank, std::optional<int> size) {
  const bool half = size.value_or(1) > 1 || rank.value_or(0) > 0;
  if (!half) return;
  const char* const there = size ? "WORLD_SIZE" : "RANK";
  const char* const missing = size ? "RANK" : "WORLD_SIZE";
  throw EnvironmentError(
      fmt::format("the variable {} is set, and {} is not", there, missing),
      "together they say which of how many ranks this is",
      fmt::format("set both, start with mpirun or torchrun, or unset {}", there));
}

// Whether RANK and WORLD_SIZE take precedence over this launcher's variables, which a rank has
// inherited: torchrun may itself be a task of srun or mpirun, and a shell of srun is a task of one.
bool starts_another(Lookup lookup, const Launch& launch) {
  if (lookup("RANK") == nullptr || lookup("WORLD_SIZE") == nullptr) return false;
  return lookup("TORCHELASTIC_RUN_ID") != nullptr ||
         (launch.launcher == Launcher::kSlurm && launch.size == 1);
}

Launch read_launcher(Lookup lookup) {
  for (const Variables& names : kLaunchers) {
    if (!is_set(lookup, names.rank) || !is_set(lookup, names.size)) continue;
    Launch launch{.launcher = names.launcher};
    launch.size = number(lookup, names.size, 1, kMaxRanks).value_or(0);
    if (launch.launcher != Launcher::kEnvironment && starts_another(lookup, launch)) continue;
    const int ranks = launch.size == 0 ? kMaxRanks : launch.size;
    launch.rank = number(lookup, names.rank, 0, ranks - 1).value_or(0);
    launch.local_size =
        number(lookup, names.local_size, 1, ranks).value_or(launch.size == 0 ? 1 : launch.size);
    const std::optional<int> local_rank = number(lookup, names.local_rank, 0, ranks - 1);
    launch.has_local_rank = local_rank.has_value();
    launch.local_rank = local_rank.value_or(launch.rank);
    return launch;
  }
  refuse_half(number(lookup, "RANK", 0, kMaxRanks - 1), number(lookup, "WORLD_SIZE", 1, kMaxRanks));
  return {};
}

// The rank and size of the options, where the launcher sets neither.
void apply_rank_options(const LaunchOptions& options, Launch& launch) {
  const int size = options.size.value_or(1);
  if (size > 1 && !options.rank) {
    throw UsageError(fmt::format("one of {} ranks does not know its number", size),
                     "the number of ranks was given, the rank was not",
                     fmt::format("give each process its rank, 0 to {}, or start all of them with "
                                 "torchrun or mpirun",
                                 size - 1));
  }
  const int rank = options.rank.value_or(0);
  if (rank >= size) {
    throw UsageError(fmt::format("there is no rank {}", rank),
                     fmt::format("the number of ranks is {}, and they are counted from 0", size),
                     "give every process the same number of ranks, and each its own rank");
  }
  if (size == 1) return;
  launch = {.launcher = Launcher::kByHand,
            .rank = rank,
            .size = size,
            .local_rank = rank,
            .local_size = size};
}

void check_request(const char* what, std::optional<int> requested, int alone, int from_launcher) {
  if (!requested || *requested == alone || *requested == from_launcher) return;
  throw UsageError(fmt::format("{} {} contradicts the launcher", what, *requested),
                   fmt::format("the launcher's variables say {}", from_launcher),
                   "leave it to the launcher, or start without one");
}

void apply_local_rank(std::optional<int> local_rank, Launch& launch) {
  if (!local_rank) return;
  if (launch.size == 1 && *local_rank > 0) {
    throw UsageError(fmt::format("local rank {} was started alone", *local_rank),
                     "no launcher's variables say that there are other ranks",
                     "start all ranks with torchrun or mpirun");
  }
  if (launch.has_local_rank || launch.size == 1) {
    check_request("local rank", local_rank, 0, launch.local_rank);
    return;
  }
  launch.local_rank = *local_rank;
  launch.has_local_rank = true;
}

std::optional<MeetingPlace> place_of(Lookup lookup, const std::string& url, const Launch& launch) {
  if (launch.size == 1) return std::nullopt;
  if (url == "env://") return environment_place(lookup);
  if (!url.empty()) return parse_meeting_url(url);
  switch (launch.launcher) {
    case Launcher::kSlurm:  // without PMIx, MPI would count one rank
      return lookup("PMIX_RANK") == nullptr ? slurm_place(lookup) : std::nullopt;
    case Launcher::kEnvironment:
    case Launcher::kByHand:
      return environment_place(lookup);
    default:
      return std::nullopt;
  }
}

// LOCKSTEP_TOKEN: what only those who may take part know.
void add_secret(Lookup lookup, MeetingPlace& place) {
  const char* const secret = lookup("LOCKSTEP_TOKEN");
  if (secret != nullptr && *secret != '\0') place.token += fmt::format("\n{}", secret);
}

}  // namespace

Launch read_launch(Lookup lookup, const LaunchOptions& options) {
  Launch launch = read_launcher(lookup);
  if (launch.size == 0 && !options.url.empty()) launch.size = options.size.value_or(0);
  if (launch.size == 1) {
    apply_rank_options(options, launch);
  } else {
    check_request("rank", options.rank, 0, launch.rank);
    check_request("number of ranks", options.size, 1, launch.size);
  }
  apply_local_rank(options.local_rank, launch);
  const bool lone = launch.launcher == Launcher::kNone && !options.size;
  if (lone && !options.url.empty() && options.url != "env://") {
    throw UsageError("there is a place to meet, and nobody to meet",
                     "nothing says how many ranks there are, so this one would train alone",
                     "give the number of ranks and this one's, or start all with torchrun");
  }
  launch.place = place_of(lookup, options.url, launch);
  if (launch.place) add_secret(lookup, *launch.place);
  if (launch.place && launch.size == 0) {
    throw UsageError("nobody says how many ranks there are",
                     "this launcher tells a rank its number alone",
                     "give the number of ranks too");
  }
  return launch;
}

Launch read_launch(const LaunchOptions& options) {
  return read_launch([](const char* name) -> const char* { return std::getenv(name); }, options);
}

bool shares_cores(const Launch& launch) {
  return launch.size == 0 || launch.local_size > usable_cores();
}

}  // namespace lockstep::comm
