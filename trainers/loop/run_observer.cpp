#include "trainers/loop/run_observer.h"

namespace lockstep::trainers {

RunObserver::RunObserver(const TrainingParts& parts, RunLog& log)
    : parts_(parts),
      numerics_(parts, log),
      trace_(parts_.replay ? std::nullopt : parts_.run.request.trace,
             parts_.ranks,
             parts_.stream,
             parts_.model) {
  if (parts_.fault && parts_.fault->breaks_layer()) {
    layer_fault_.emplace(*parts_.fault, parts_.model, parts_.run_ranks());
  }
}

void RunObserver::begin_step(int64_t step) {
  step_ = step;
  numerics_.begin_step(step);
}

bool RunObserver::needs_host() {
  return (parts_.fault && parts_.fault->is_within_step()) || numerics_.listener() != nullptr;
}

TapeListener* RunObserver::listener(const Shards& shards) {
  TapeListener* const watch = trace_.listener(numerics_.listener());
  return layer_fault_ ? layer_fault_->listener(step_, shards, watch) : watch;
}

}  // namespace lockstep::trainers
