// What gradients on GPUs travel over.
#pragma once

#include <string>

#include "comm/device_exchange.h"
#include "core/communicator.h"
#include "trainers/config/run_config.h"

namespace lockstep::trainers {

struct GradientRoute {
  comm::MakeDeviceExchange exchange;  // empty: through the host, or none; outlives what it makes
  std::string note;                   // why not the usual one
};

// A collective call. Between several GPUs it is NCCL where every rank can load it, else CUDA IPC on
// one host, else the host. Settles config.transport and config.exchange.on_device; an error ends
// all ranks, as on_all_ranks() does: what was asked for and is not to be had, ranks that do not
// meet. Requires: a resolved config; the rank's device is chosen.
GradientRoute choose_gradient_route(RunConfig& config, Communicator& ranks);

}  // namespace lockstep::trainers
