// What a training does with its test images.
#include "core/digest.h"
#include "trainers/output/clock.h"
#include "trainers/loop/training.h"

namespace lockstep::trainers {

EvaluationTask Training::test_task() {
  EvaluationTask task = test_of(p_.run.request, p_.data, p_.model, p_.console);
  task.skipped = &skipped_in_test_;
  return task;
}

std::optional<Evaluation> Training::measure() {
  p_.console.tutorial("begin testing");
  std::optional<Evaluation> evaluation = evaluate(test_task(), p_.stream, p_.ranks);
  if (evaluation) p_.console.info(accuracy_line(*evaluation, p_.run.request.apex_lines));
  result_.stopped = !evaluation;
  return evaluation;
}

// Nothing without --ema, and when a signal asked for a stop.
std::optional<Evaluation> Training::measure_average(const EpochProgress& epoch) {
  if (update_.average() == nullptr || result_.stopped) return std::nullopt;
  std::optional<Evaluation> evaluation;
  update_.with_average([&] {
    EvaluationTask task = test_task();
    task.on_batch = {};
    evaluation = evaluate(task, p_.stream, p_.ranks);
    if (evaluation && traces_.checkpoints != nullptr) {
      traces_.checkpoints->save_average(p_.model, position(epoch, Evaluated::kYes));
    }
  });
  if (evaluation) p_.console.info(average_line(*evaluation));
  result_.stopped = !evaluation;
  return evaluation;
}

std::string Training::digest() const {
  return traces_.directory == nullptr ? "" : to_hex(state_digest(p_.model));
}

void Training::log_evaluation(std::string_view split,
                              int epoch,
                              const Evaluation& evaluation,
                              const std::string& digest) {
  log_.append({{"split", split},
               {"epoch", int64_t{epoch}},
               {"step", result_.steps},
               {"t", seconds_since_process_start()},
               {"loss", evaluation.loss},
               {"acc1", evaluation.acc1()},
               {"acc5", evaluation.acc5()},
               {"correct", evaluation.correct1},
               {"total", evaluation.total},
               {"digest", digest}});
}

void Training::judge(const EpochProgress& epoch, const Evaluation& evaluation) {
  if (evaluation.correct1 < result_.best.correct1) return;
  result_.best = evaluation;
  result_.best_epoch = epoch.number();
  if (traces_.checkpoints != nullptr) {
    traces_.checkpoints->save_best(p_.model, position(epoch, Evaluated::kYes));
  }
}

}  // namespace lockstep::trainers
