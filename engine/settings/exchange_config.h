// How ranks exchange gradients, as the flags ask for it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "comm/connect.h"
#include "comm/gradient_reducer.h"
#include "engine/settings/choice_names.h"

namespace lockstep {

// As --algorithm and --transport spell them; nccl, which is both, and ipc only where gradients are
// on GPUs.
inline constexpr std::array kAlgorithmNames = {Named<Algorithm>(Algorithm::kTree, "tree"),
                                               Named<Algorithm>(Algorithm::kRing, "ring"),
                                               Named<Algorithm>(Algorithm::kStar, "star"),
                                               Named<Algorithm>(Algorithm::kLibrary, "mpi"),
                                               Named<Algorithm>(Algorithm::kNone, "none")};
inline constexpr std::array kTransportNames = {
    Named<comm::Transport>(comm::Transport::kAuto, "auto"),
    Named<comm::Transport>(comm::Transport::kShm, "shm"),
    Named<comm::Transport>(comm::Transport::kMpi, "mpi"),
    Named<comm::Transport>(comm::Transport::kTcp, "tcp")};

// Names what carries gradients between GPUs; ranks meet and agree over `transport` all the same.
enum class DeviceTransport : uint8_t {
  kHost,
  kAuto,  // the best that all ranks have, trainers/cli/gradient_route.h
  kNccl,
  kIpc,
};

struct ExchangeConfig {
  Algorithm algorithm = Algorithm::kTree;
  comm::Transport transport = comm::Transport::kAuto;
  DeviceTransport on_device = DeviceTransport::kAuto;
  comm::BucketCaps caps;
  bool overlap = true;
  Dtype wire = Dtype::kF32;
  double predivide = 1;
  bool zero_unused = false;
  int64_t rank_threads = 0;  // ranks that are threads of this process; 0: they are processes
  int64_t check_ranks = 0;   // steps between two comparisons of replicas; 0: at ends of epochs only

  // Whether the order of the sum is independent of the number of ranks.
  bool keeps_bits() const { return algorithm == Algorithm::kTree || algorithm == Algorithm::kStar; }
  // Whether the ranks' weights stay equal.
  bool keeps_replicas() const { return algorithm != Algorithm::kNone; }
};

comm::ReducerOptions reducer_options(const ExchangeConfig& config, int64_t micro_steps);

std::string_view name_of(Algorithm algorithm);  // as --algorithm spells it
// Names the algorithm of a run, whose library may be NCCL.
std::string_view algorithm_name(const ExchangeConfig& config);

}  // namespace lockstep
