// The states of schedule, early stopping and loss scale as a checkpoint's metadata have them: JSON.
#pragma once

#include <optional>
#include <string>

#include "engine/update/early_stopping.h"
#include "engine/update/schedule.h"
#include "kernels/optim/loss_scale.h"

namespace lockstep::trainers {

std::string to_text(const std::optional<ScheduleState>& state);  // "{}" where there is none
std::string to_text(const EarlyStopping::State& state);
// Uses PyTorch's names, so that torch.amp.GradScaler loads it, and adds counts that PyTorch does
// not have.
std::string to_text(const kernels::LossScaleState& state);

// Read what to_text() writes. Errors: FileJson's (trainers/config/file_json.h) for other text;
// nothing is returned for a loss scale that no run has.
std::optional<ScheduleState> schedule_state_of(const std::string& text);
EarlyStopping::State early_stopping_state_of(const std::string& text);
std::optional<kernels::LossScaleState> loss_scale_state_of(const std::string& text);

}  // namespace lockstep::trainers
