// The classes that the outputs of weights stand for, so that each class folder of a test set is
// compared with the output of its name.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "trainers/report/evaluation_record.h"

namespace lockstep::trainers {

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
