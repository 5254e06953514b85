// Opens a run's images on all ranks and checks that they are the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/communicator.h"
#include "data/dataset.h"
#include "engine/observe/fault.h"
#include "trainers/config/run_request.h"

namespace lockstep::trainers {

// They are the same on every rank.
struct RunData {
  data::DatasetPair sets;
  std::string digest;
};

// A collective call. An error ends all ranks here, and so do images that differ between ranks.
RunData open_data(const RunRequest& request,
                  const std::optional<Fault>& fault,
                  Communicator& ranks);

// Returns notes on files that were left out and, if the run evaluates, on classes without images.
std::vector<std::string> notes_on(const RunData& data, bool evaluates);

// Returns the numbers of these files by split and extension, for run.json.
std::map<std::string, std::map<std::string, int64_t>> left_out_of(const RunData& data);

}  // namespace lockstep::trainers
