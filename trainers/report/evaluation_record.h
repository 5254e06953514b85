// The settings of an evaluation that are recorded with the weights, and what a run takes of them:
// how pixels become the network's input, which network and arithmetic are used, and what the
// outputs mean.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "trainers/config/run_request.h"
#include "trainers/options/command_line.h"

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

enum class WeightsUse : uint8_t {
  kEvaluate,  // the whole record applies
  kResume,    // the whole record, but the precision is the new command's, with a note
  kFineTune   // the network and its pixels; sizes, classes and precision are those of the new run
};

// Sets each recorded flag that this use takes, unless the flag was given. The flags of precision
// are taken all or none, because half of one level and half of another make no valid one.
// Errors: UsageError for a value that such a flag cannot have.
void take_flags(Options& options, const EvaluationRecord& recorded, WeightsUse use);

struct Contradiction {
  std::string flag;
  std::string now;
  std::string recorded;
};
// Returns the first flag that was given against the record and for which a note is not enough,
// because it means other weights or, for a run that goes on, other bits.
std::optional<Contradiction> contradiction(const EvaluationRecord& now,
                                           const EvaluationRecord& recorded,
                                           WeightsUse use);

// Returns notes on flags: those that were taken, where they differ from `asked`, which is this run
// without the file; those that were given against the record; and those that the file leaves open.
std::vector<std::string> notes_on_flags(const EvaluationRecord& asked,
                                        const EvaluationRecord& now,
                                        const EvaluationRecord& recorded,
                                        WeightsUse use,
                                        const std::string& file);

// Reads the file of --class-names: a name a line, in the order of the outputs. An empty path gives
// no names. Errors: DataError.
std::vector<std::string> read_class_names(const std::filesystem::path& file);

// All that is known about the outputs of the weights in `file`.
struct OutputClasses {
  const std::string& file;
  const EvaluationRecord& recorded;
  const std::vector<std::string>& given;  // by --class-names; empty: none

  // By output, as folders are named; empty: not known. Errors: CheckpointError for a name that is
  // recorded twice.
  std::vector<std::string> names() const;
  // Returns notes on what is assumed. now: the evaluation; images: opened with names(). Errors:
  // DataError where an image's label may not be the number of the output for its class; UsageError
  // for names that have no use.
  std::vector<std::string> check(const EvaluationRecord& now, const data::Dataset& images) const;
};

}  // namespace lockstep::trainers
