// The fields of a training's position, which each file that holds one writes and reads by these
// names.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "engine/update/training_position.h"

namespace lockstep {

// T, const or not: one function visits the fields of a record, to write them or to read them.
template <class T, class Record>
concept Possibly = std::same_as<std::remove_const_t<T>, Record>;

enum class Presence : uint8_t {
  kAlways,
  kNanAsNull,   // JSON has no NaN
  kMayBeAbsent  // as an infinity is; a reader keeps its own value
};

// Call visit(name, field, presence) for each field, the last only where it is not kAlways.
void for_each_field(Possibly<EpochSums> auto& sums, auto&& visit) {
  visit("steps", sums.steps);
  visit("images", sums.images);
  visit("loss", sums.loss, Presence::kNanAsNull);
  visit("correct1", sums.correct1);
  visit("correct5", sums.correct5);
}
void for_each_field(Possibly<Evaluation> auto& evaluation, auto&& visit) {
  visit("correct1", evaluation.correct1);
  visit("correct5", evaluation.correct5);
  visit("total", evaluation.total);
  visit("loss", evaluation.loss, Presence::kNanAsNull);
}
void for_each_field(Possibly<ScheduleState> auto& state, auto&& visit) {
  visit("factor", state.factor);
  visit("best", state.plateau.best, Presence::kMayBeAbsent);
  visit("bad_epochs", state.plateau.bad_epochs);
  visit("metric", state.metric, Presence::kMayBeAbsent);
}
void for_each_field(Possibly<EarlyStopping::State> auto& state, auto&& visit) {
  visit("worse_epochs", state.worse_epochs);
  visit("best", state.best, Presence::kMayBeAbsent);
}
// The names are PyTorch's, so that torch.amp.GradScaler loads it; the last three are our own.
void for_each_field(Possibly<kernels::LossScaleState> auto& state, auto&& visit) {
  kernels::LossScaleRule rule;  // what is read of it has no use here
  visit("scale", state.scale);
  visit("growth_factor", rule.growth_factor, Presence::kMayBeAbsent);
  visit("backoff_factor", rule.backoff_factor, Presence::kMayBeAbsent);
  visit("growth_interval", rule.growth_interval, Presence::kMayBeAbsent);
  visit("_growth_tracker", state.growth_tracker);
  visit("applied", state.applied);
  visit("skipped", state.skipped);
  visit("consecutive_skips", state.consecutive_skips);
}

// Whether a run can have such a loss scale.
inline bool is_possible(const kernels::LossScaleState& state) {
  return state.scale > 0 && state.growth_tracker < kernels::LossScaleRule().growth_interval &&
         state.consecutive_skips < kMaxSkips;
}

}  // namespace lockstep
