// Chooses the transport of gradients on GPUs.
#pragma once

#include <string>
#include <string_view>

#include "comm/device_exchange.h"
#include "core/communicator.h"
#include "trainers/config/run_request.h"

namespace lockstep::trainers {

struct GradientRoute {
  comm::MakeDeviceExchange exchange;  // empty: through the host, or none; outlives what it makes
  std::string transport;              // "nccl", "ipc", or that of the host
  std::string note;                   // why not the usual one
};

// A collective call. Between several GPUs it is NCCL where every rank can load it, else CUDA IPC on
// one host, else the host, over what connect() found: `host_transport`. An error ends all ranks, as
// on_all_ranks() does: what was asked for and is not to be had, ranks that do not meet. Requires:
// the rank's device is chosen.
GradientRoute choose_gradient_route(const RunRequest& request,
                                    std::string_view host_transport,
                                    Communicator& ranks);

}  // namespace lockstep::trainers
