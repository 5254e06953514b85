// Chooses how gradients on GPUs are exchanged.
#pragma once

#include <string>
#include <string_view>

#include "comm/device_exchange.h"
#include "core/communicator.h"
#include "trainers/config/run_request.h"

namespace lockstep::trainers {

struct GradientRoute {
  comm::MakeDeviceExchange exchange;  // empty: by the host, or none; must outlive what it makes
  std::string transport;              // "nccl", "ipc", or that of the host
  std::string note;                   // why it is not the usual one
};

// A collective call. Several GPUs use NCCL where every rank can load it, else CUDA IPC on one host,
// else the host and the transport that connect() found: `host_transport`. An error ends all ranks,
// as run_or_end_all_ranks() does: the transport asked for is not available, or the ranks do not
// meet. Requires: the rank's device is chosen.
GradientRoute choose_gradient_route(const RunRequest& request,
                                    std::string_view host_transport,
                                    Communicator& ranks);

}  // namespace lockstep::trainers
