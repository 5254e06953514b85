#include "trainers/loop/training_parts.h"

#include "trainers/loop/training_data.h"
#include "trainers/report/stop_request.h"

namespace lockstep::trainers {

StepInputs program_step_parts(StepInputs parts, Console& console, const std::optional<Fault>& fault) {
  parts.warn = warn_of_images(console);
  parts.asked_to_stop = stop_requested;
  if (fault && fault->is_of_exchange()) {
    parts.bucket_exchange =
        disturbed_exchange(*fault, parts.run.request.exchange.algorithm, parts.stream.device());
  }
  return parts;
}

}  // namespace lockstep::trainers
