// Every flag of the trainers, once: parser, help and tests read this table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::trainers {

enum class Program : uint8_t { kTrainConvnet, kTrainResnet };
std::string_view name_of(Program program);  // "train_convnet"

enum class FlagKind : uint8_t { kInt, kFloat, kString, kChoice, kBool };

enum class FlagGroup : uint8_t { kData, kModel, kOptimizer, kPrecision, kDistributed, kOutput };
inline constexpr int kFlagGroups = 6;
std::string_view name_of(FlagGroup group);

// Where --help lists a flag: in the short page too, or only in --help-all.
enum class HelpPage : uint8_t { kShort, kAll };

struct PerProgram {
  std::string_view convnet = {};
  std::string_view resnet = {};
  constexpr std::string_view of(Program program) const {
    return program == Program::kTrainConvnet ? convnet : resnet;
  }
};

struct FlagRange {
  double min = 0;
  double max = 0;
};

struct Flag {
  std::string_view name = {};     // without dashes: "batch-size"
  std::string_view aliases = {};  // with dashes: "-b --b"
  FlagKind kind = FlagKind::kString;
  FlagGroup group = FlagGroup::kOutput;
  HelpPage page = HelpPage::kAll;
  bool resnet_only = false;
  std::string_view metavar = {};    // of strings and numbers, in help and errors
  PerProgram initial = {};          // default value; empty: none
  FlagRange range = {};             // of numbers, both ends allowed
  PerProgram choices = {};          // "auto|cpu"
  PerProgram later_choices = {};    // parse, and are refused as not built yet
  std::string_view not_built = {};  // what is missing: for later_choices, else for the whole flag
  std::string_view means = {};      // a shorthand: the argument it stands for, "--opt-level=O1"
  std::string_view help = {};
  std::string_view origin = {};  // whose name it is: "main.py", "Apex", "Lockstep"

  // A flag that is not built parses, and is refused with the reason when it is given.
  bool built() const { return not_built.empty() || !later_choices.convnet.empty(); }
  bool of(Program program) const { return program == Program::kTrainResnet || !resnet_only; }
};

// In help order.
std::span<const Flag> flag_table();

// The flag with this name or alias, as typed after normalization: "--batch-size", "-b", "--b".
// Null when there is none.
const Flag* find_flag(std::string_view dashed);

// "a|b" -> {"a", "b"}; "" -> {}.
std::vector<std::string_view> split_words(std::string_view words, char separator);

// "LOCKSTEP_BATCH_SIZE".
std::string environment_name(const Flag& flag);

}  // namespace lockstep::trainers
