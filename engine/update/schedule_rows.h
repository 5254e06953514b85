// The schedules of the learning rate, a row each: all that the engine and the programs know of one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/function_ref.h"
#include "engine/settings/ranges.h"
#include "engine/settings/schedule_options.h"

namespace lockstep {

// Where a step lies in a run.
struct SchedulePoint {
  int64_t epoch = 0;        // since the schedule began
  int64_t position = 0;     // after warm-up, in steps or epochs
  int64_t length = 0;       // of the part of the run after warm-up
  double plateau_cuts = 1;  // the product of a plateau's cuts so far

  double progress() const {  // 0 to 1
    return position == 0 ? 0 : static_cast<double>(position) / static_cast<double>(length);
  }
};

struct ScheduleRow {
  ScheduleKind kind;
  std::string_view name;     // as --lr-scheduler spells it
  std::string_view meaning;  // for help
  std::string_view members;  // of ScheduleOptions that it uses, beside warm-up's
  // The rate is the base rate times warm-up's factor times this one.
  double (*factor)(const ScheduleOptions& options, const SchedulePoint& at);
  std::string_view rise = {};  // the member that says how long its own rise is; empty: it has none

  bool uses(std::string_view member) const;
};

std::span<const ScheduleRow> schedule_rows();
const ScheduleRow& row_of(ScheduleKind kind);
// The names of rows that `fits` accepts: "step, multistep, plateau".
std::string schedule_names(std::string_view separator,
                           FunctionRef<bool(const ScheduleRow& row)> fits);

// A number among ScheduleOptions.
struct ScheduleMember {
  std::string_view name;
  NumberRange range;
  double (*value)(const ScheduleOptions& options);
  bool is_whole = false;
};

std::span<const ScheduleMember> schedule_members();

// Errors: UsageError for options that contradict the schedule, or lack what it needs. `spelled`
// names a member as its user knows it.
void check_fits(const ScheduleOptions& options,
                FunctionRef<std::string(std::string_view member)> spelled);

}  // namespace lockstep
