// Flags that a file of weights records: they are taken from there, or compared with the flags
// given.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainers/options/command_line.h"
#include "trainers/report/evaluation_record.h"

namespace lockstep::trainers {

enum class WeightsUse : uint8_t {
  kEvaluate,  // the whole record applies
  kResume,    // likewise, but the precision is the new command's, with a note
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

}  // namespace lockstep::trainers
