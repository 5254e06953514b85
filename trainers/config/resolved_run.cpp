#include "trainers/config/resolved_run.h"

#include <ctime>

#include <fmt/chrono.h>

#include "engine/step/step_inputs.h"

namespace lockstep::trainers {

bool ResolvedRun::runs_as_graph() const {
  return request.graph && fits_one_graph(request, batch, over_nccl());
}

std::string default_output_dir(const std::string& arch,
                               int64_t ranks,
                               std::chrono::system_clock::time_point start) {
  const std::time_t utc = std::chrono::system_clock::to_time_t(start);
  return fmt::format("runs/{:%Y%m%d-%H%M%S}-{}-n{}", fmt::gmtime(utc), arch, ranks);
}

}  // namespace lockstep::trainers
