// Opens a run's images on all ranks and checks that they are the same.
#pragma once

#include <optional>
#include <string>

#include "core/communicator.h"
#include "data/dataset.h"
#include "trainers/config/run_request.h"
#include "trainers/debug/fault.h"

namespace lockstep::trainers {

// They are the same on every rank.
struct RunData {
  data::DatasetPair sets;
  std::string digest;
  std::optional<std::string> note;  // on classes without images to evaluate
};

// A collective call. An error ends all ranks here, and so do images that differ between ranks.
RunData open_data(const RunRequest& request,
                  const std::optional<Fault>& fault,
                  Communicator& ranks);

}  // namespace lockstep::trainers
