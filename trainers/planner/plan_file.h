// Plan files: the engines of cuDNN that compute convolutions, found by --autotune and read by
// --plan-file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace lockstep::trainers {

// The cuDNN and the card for which engines were chosen: another cuDNN numbers engines differently,
// and another card has other times.
struct PlanOrigin {
  std::string cudnn;  // "9.19.0"
  std::string card;   // "NVIDIA H200 (sm_90)"

  bool operator==(const PlanOrigin& other) const = default;
};

// As kernels::cudnn::TimedEngine, but available in builds without cuDNN too.
struct PlannedEngine {
  static constexpr const char* kNone = "none";

  std::string engine;  // kNone: a fused form that has none, or does not pay
  double microseconds = 0;
  double rule_microseconds = 0;
  int64_t workspace_bytes = 0;

  bool is_there() const { return engine != kNone; }
};

// The key is kernels::ConvolutionProblem::text() of one shard, padded().
using PlannedEngines = std::map<std::string, PlannedEngine>;

struct PlanFile {
  static constexpr int kFormatVersion = 3;  // files of another one cannot be read

  PlanOrigin origin;
  PlannedEngines engines;
};

// Indented, ends in a newline.
std::string to_json(const PlanFile& plans);
// Errors: EnvironmentError, naming `file`, for text that to_json() does not write.
PlanFile parse_plans(const std::string& text, const std::string& file);
// Errors: EnvironmentError for a file that cannot be read, and as parse_plans().
PlanFile read_plans(const std::filesystem::path& file);
// Errors: EnvironmentError where the plans were made for another cuDNN or card than `current`.
void check_origin(const PlanFile& plans, const PlanOrigin& current, const std::string& file);

// Returns a digest of problems and engines, without times: equal digests mean equal kernels. "" for
// none.
std::string digest_of(const PlannedEngines& engines);

}  // namespace lockstep::trainers
