#include "trainers/loop/training_evaluation.h"

#include "trainers/loop/training_data.h"
#include "trainers/report/progress.h"

namespace lockstep::trainers {

TrainingEvaluation::TrainingEvaluation(const TrainingParts& parts)
    : p_(parts), skipped_(p_.data.test->size(), warn_of_images) {}

EvaluationTask TrainingEvaluation::task() {
  EvaluationTask task = test_of(p_.run.request, p_.data, p_.model, p_.console);
  task.skipped = &skipped_;
  return task;
}

std::optional<Evaluation> TrainingEvaluation::measure() {
  p_.console.tutorial("begin testing");
  std::optional<Evaluation> evaluation = evaluate(task(), p_.stream, p_.ranks);
  if (evaluation) p_.console.info(accuracy_line(*evaluation, p_.run.request.apex_lines));
  return evaluation;
}

std::optional<Evaluation> TrainingEvaluation::measure_average(WeightUpdate& update,
                                                              CheckpointWriter* checkpoints,
                                                              const TrainingPosition& at) {
  std::optional<Evaluation> evaluation;
  update.with_average([&] {
    EvaluationTask silent = task();
    silent.on_batch = {};
    evaluation = evaluate(silent, p_.stream, p_.ranks);
    if (evaluation && checkpoints != nullptr) checkpoints->save_average(p_.model, at);
  });
  if (evaluation) p_.console.info(average_line(*evaluation));
  return evaluation;
}

}  // namespace lockstep::trainers
