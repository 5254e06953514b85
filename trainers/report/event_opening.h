// The settings of a run, for TensorBoard to show beside its curves.
#pragma once

#include "trainers/report/run_events.h"
#include "trainers/report/run_record.h"

namespace lockstep::trainers {

// Returns the settings that --help shows or that were set as columns of the table of runs, and the
// command line and all flags as texts.
EventOpening event_opening(const RunRecord& record);

}  // namespace lockstep::trainers
