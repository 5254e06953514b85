// The content of run.json and metrics.jsonl.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "comm/gradient_reducer.h"
#include "comm/handshake.h"
#include "core/error.h"
#include "engine/results/training_result.h"
#include "trainers/config/run_request.h"
#include "trainers/options/command_line.h"
#include "trainers/report/evaluation_record.h"

namespace lockstep::trainers {

struct BucketSize {
  int64_t tensors = 0;
  int64_t bytes = 0;
};

// The values that fix a run, the same on every rank.
struct RunPlan {
  int64_t global_batch = 0;  // B
  int64_t micro_steps = 1;   // A
  int64_t shards = 1;        // S
  int64_t bn_groups = 1;     // G
  Seeds seeds = {};
  std::string algorithm;
  std::string transport;  // "none" for a lone rank
  std::string wire;       // dtype of gradients on their way
  double predivide = 1;
  bool overlap = true;
  std::vector<BucketSize> buckets;
  std::string plan_choices = {};  // as ResolvedRun's
  int64_t steps_per_epoch = 0;
  int64_t last_step = 0;           // the run's last step; 0: it trains nothing
  std::vector<int64_t> same_bits;  // rank counts (engine/settings/batch_division.h)
};

RunPlan make_run_plan(const ResolvedRun& run, std::span<const comm::Bucket> buckets);

// The plan as fields that ranks compare in a handshake.
std::vector<comm::HandshakeField> handshake_fields(const RunPlan& plan);

struct RankRecord {
  std::string host;
  std::string device;
  int threads = 1;
  int local_rank = 0;
  int64_t cores = 0;                              // that the process may use; 0: not known
  std::optional<int64_t> peak_bytes = {};         // of the process's memory on the host, at the end
  std::optional<int64_t> device_peak_bytes = {};  // on its GPU, at the end
};

struct FinalMetrics {
  std::optional<Evaluation> evaluation = {};  // as acc1, acc5 (percent), loss, correct and total
  std::optional<double> images_per_s = {};    // absent where no step was left to take
  double wall_s = 0;
  double first_step_s = 0;
};

// The checkpoint that a run went on from.
struct ResumedFrom {
  std::string file;
  int64_t step = 0;
};

// The content of run.json. Written at the start and again at the end; the optional members are
// known only then.
struct RunRecord {
  static constexpr int kSchemaVersion = 1;

  std::vector<std::string> argv;
  std::vector<ResolvedFlag> flags;
  std::map<std::string, std::string> versions;  // of this program and its libraries
  std::vector<RankRecord> ranks;                // by rank
  std::string data_digest;
  RunPlan plan;
  EvaluationRecord evaluation;
  std::optional<ResumedFrom> resumed;
  std::chrono::system_clock::time_point start;
  std::optional<std::chrono::system_clock::time_point> end;
  std::optional<ExitCode> exit_code;
  std::optional<FinalMetrics> final_metrics;
  std::optional<int64_t> early_stop_epoch;  // from 0
  std::optional<int64_t> skipped_steps;     // since epoch 0
  std::optional<ExchangeSummary> communication;
  std::optional<StepTimes> step_times;  // of rank 0
  std::optional<uint64_t> digest;       // of the final weights and buffers, core/digest.h
  // Files among the photos that were left out: numbers by split and extension.
  std::map<std::string, std::map<std::string, int64_t>> left_out;
};

// One member of a line of metrics.jsonl.
struct Metric {
  std::string_view name;
  std::variant<int64_t, double, bool, std::string_view> value;
};

// Numbers that are not finite become null, and their object then says "nonfinite": true. In text,
// bytes that are not UTF-8 become U+FFFD.
std::string to_json(const RunRecord& record);  // indented, ends in a newline
// Parses the record that to_json() wrote, by this version or an older one of the same schema.
// Members that an older version lacks keep their defaults. `file` is named in errors.
// Errors: DataError for text that is no run.json, and for another schema version.
RunRecord run_record_of(const std::string& json, const std::string& file);
// The summary of --json: figures of the run and its directory. One line, ends in a newline.
std::string summary_json(const RunRecord& record,
                         const std::string& directory,
                         const TrainingResult& result);
// The summary's keys that are known when `rank` failed early. `directory`: empty where there is
// none.
std::string summary_json(const Error& error, int rank, const std::string& directory);
// The error that ends a run whose last state could not be written, or that applied none of its
// steps.
std::optional<Error> failure_of(const TrainingResult& result, const std::string& directory);
ExitCode exit_code_of(const TrainingResult& result);
std::string to_json_line(std::span<const Metric> metrics);  // one line, ends in a newline

}  // namespace lockstep::trainers
