// Flags that a file of weights records: taken from there, or compared with those that were given.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainers/options/command_line.h"
#include "trainers/report/evaluation_record.h"

namespace lockstep::trainers {

enum class WeightsUse : uint8_t {
  kEvaluate,  // all that the record says holds
  kResume,    // likewise, but the precision is the new command's, with a note
  kFineTune   // the network and its pixels; sizes, classes and precision are those of the new run
};

// Sets each recorded flag that this use takes and that was not given. Of precision's flags either
// all are taken or none: half of one level and half of another is neither.
// Errors: UsageError for a value that such a flag cannot have.
void take_flags(Options& options, const EvaluationRecord& recorded, WeightsUse use);

struct Contradiction {
  std::string flag;
  std::string now;
  std::string recorded;
};
// The first flag that was given against the record, where no note would do: other weights or, for
// a run that goes on, other bits.
std::optional<Contradiction> contradiction(const EvaluationRecord& now,
                                           const EvaluationRecord& recorded,
                                           WeightsUse use);

// "class 1 is 'wasps' here, 'bees' in FILE": where both have names and they differ.
std::optional<std::string> other_class(const EvaluationRecord& now,
                                       const EvaluationRecord& recorded,
                                       const std::string& file);

// Notes on flags: what was taken, where it differs from `asked`, which is this run without the
// file; what was given against the record; what the file leaves open.
std::vector<std::string> notes_on_flags(const EvaluationRecord& asked,
                                        const EvaluationRecord& now,
                                        const EvaluationRecord& recorded,
                                        WeightsUse use,
                                        const std::string& file);

}  // namespace lockstep::trainers
