// The settings of an evaluation that are recorded with the weights: how pixels become the network's
// input, which network and arithmetic are used, and what the outputs mean.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "trainers/config/run_request.h"

namespace lockstep::trainers {

using Texts = std::map<std::string, std::string>;

struct EvaluationRecord {
  Texts flags{};        // by name, as one would type them: "normalize" is "0.1307,0.3081"
  std::string image{};  // shape of the evaluated ones, "3x224x224"
  std::vector<std::string> class_names{};  // by output; none where the data set has none
  bool average = false;                    // the weights are --ema's moving average

  bool is_known() const { return !flags.empty(); }
  bool operator==(const EvaluationRecord& other) const = default;
};

// Errors: those of normalization().
EvaluationRecord evaluation_record(const RunRequest& request, const data::DatasetPair& data);

// One object, as run.json and files of weights have it.
std::string to_json(const EvaluationRecord& record);
// Errors: nlohmann::json's for text that to_json() does not write.
EvaluationRecord evaluation_record_of(const std::string& json);

}  // namespace lockstep::trainers
