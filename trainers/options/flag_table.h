// Lists every flag of the trainers once: the parser, the help pages and tests read this table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/shards.h"
#include "core/thread_pool.h"
#include "data/loader.h"
#include "engine/settings/ranges.h"

namespace lockstep::trainers {

enum class Program : uint8_t { kTrainConvnet, kTrainResnet };
std::string_view name_of(Program program);  // "train_convnet"

enum class FlagKind : uint8_t { kInt, kFloat, kString, kChoice, kBool };

// The groups, in the order of the help pages.
enum class FlagGroup : uint8_t { kData, kModel, kOptimizer, kPrecision, kDistributed, kOutput };
inline constexpr int kFlagGroups = 6;
std::string_view name_of(FlagGroup group);  // "Data"

// Limits of flags, and of the same figures in files; also kMaxEpochs, kMaxShards, kMaxThreads
// and data::kMaxWorkers.
inline constexpr int64_t kMaxMicroSteps = 1'000'000;

struct PerProgram {
  std::string_view convnet;
  std::string_view resnet;

  constexpr PerProgram() = default;
  constexpr PerProgram(const char* both)  // NOLINT(google-explicit-constructor): keeps rows short
      : convnet(both), resnet(both) {}
  constexpr PerProgram(std::string_view of_convnet, std::string_view of_resnet)
      : convnet(of_convnet), resnet(of_resnet) {}
  constexpr std::string_view of(Program program) const {
    return program == Program::kTrainConvnet ? convnet : resnet;
  }
};

struct Flag {
  std::string_view name = {};     // without dashes: "batch-size"
  std::string_view aliases = {};  // with dashes: "-b --b"
  FlagKind kind = FlagKind::kString;
  bool brief = false;  // in --help too, not only in --help-all
  bool resnet_only = false;
  std::string_view takes = {};  // the value in help and errors; empty: N, X or the choices
  PerProgram initial = {};      // the default; empty: none
  NumberRange range = {};       // of numbers
  PerProgram choices = {};      // "auto|cpu"
  std::string_view means = {};  // a shorthand: the argument that it stands for, "--opt-level=O1"
  std::string_view help = {};   // of a switch that is on by default: what --no-NAME does
  FlagGroup group = FlagGroup::kOutput;

  bool is_for(Program program) const { return program == Program::kTrainResnet || !resnet_only; }
};

std::span<const Flag> flag_table();

struct ScheduleFlag {
  std::string_view flag;    // "lr-gamma"
  std::string_view member;  // of ScheduleOptions, that it sets: "gamma"
};
std::span<const ScheduleFlag> schedule_flags();

// The flag with this name or alias: "--batch-size", "-b", "--b". Null when there is none.
const Flag* find_flag(std::string_view dashed);

// Whether the flag takes the number. One that f32 cannot hold is refused, unless it is 0.
bool is_allowed(const Flag& flag, double number);
// "a whole number from 1 to 1000000", where `number` is not allowed.
std::string allowed_numbers(const Flag& flag, double number);

// Whether the flag prints something instead of a run, or is --verbose. Such flags are for the
// command line only.
bool only_prints(const Flag& flag);

// Whether the flag says which rank this is, or where ranks meet. The ranks of a run need not agree
// on such flags.
bool is_ranks_own(const Flag& flag);

// "LOCKSTEP_BATCH_SIZE".
std::string environment_name(const Flag& flag);
// Checks the names of LOCKSTEP_* variables: a misspelled one would be ignored, and the run would
// differ from what was asked for. `variables`: "NAME=value" each, null at the end, as `environ` has
// them. Errors: UsageError, with the nearest name, for one that neither a flag, the library, a
// script nor a test reads.
void check_variables(const char* const* variables);

// A flag of another trainer that has no counterpart here. It gets an answer instead of "unknown".
struct ForeignFlag {
  std::string_view name;  // without dashes
  bool takes_value = false;
  bool refused = false;       // it would change the result, or its user expects it to
  std::string_view harmless;  // values that are accepted although it is refused: "-1|0"
  std::string_view origin;    // the trainer that has it
  std::string_view reason;
  std::string_view instead;  // what to do here
};

std::span<const ForeignFlag> foreign_flags();

// Null when there is none. `dashed`: "--gpu".
const ForeignFlag* find_foreign_flag(std::string_view dashed);

// Returns the note for a flag that is accepted and changes nothing. Errors: UsageError for a
// refused one.
std::string answer_foreign_flag(const ForeignFlag& flag, std::string_view value);

// Returns the note for a flag without a value that is given as --no-NAME or as False. A row named
// no-NAME holds the answer where that would change something.
std::string answer_negated_flag(const ForeignFlag& flag);

}  // namespace lockstep::trainers
