#include "trainers/loop/evaluation_outputs.h"

#include "trainers/config/augmentation_config.h"
#include "trainers/loop/training_data.h"
#include "trainers/report/process.h"

namespace lockstep::trainers {

void OutputCollector::add(const EvaluatedImages& images) {
  if (wanted_.mistakes != nullptr) finder_.add(images);
  if (wanted_.logits != nullptr) collector_.add(images.logits, images.labels);
}

void OutputCollector::settle(const data::EvaluationPlan* plan, Communicator& ranks) {
  if (wanted_.mistakes != nullptr) *wanted_.mistakes = finder_.over_ranks(ranks);
  if (wanted_.logits != nullptr && plan != nullptr) {
    *wanted_.logits = collector_.over_ranks(*plan, ranks);
  }
}

EvaluationTask evaluation_task(const RunRequest& request,
                               const data::DatasetPair& data,
                               nn::Module& model,
                               Console& console) {
  // Programs may train on images of their own. What a network was trained on counts.
  const data::Dataset& normalized_as = data.train ? *data.train : *data.test;
  EvaluationTask task{.model = model,
                      .dataset = data.test,
                      .input = {.normalization = normalization(request.normalize, normalized_as),
                                .views = request.test.views},
                      .precision = request.precision.network(),
                      .chunk_images = request.test.batch,
                      .loss = {.div_batch = request.loss.div_batch},
                      .workers = request.workers,
                      .warn = warn_of_images(console),
                      .stop = stop_requested};
  if (request.main_py_lines) {
    task.on_batch = [&console,
                     frequency = request.print_freq,
                     line = request.apex_lines ? apex_test_line : test_line](
                        int64_t batch, int64_t batches, const TestMetrics& metrics) {
      if (batch % frequency == 0) console.progress_line(line(batch, batches, metrics));
    };
  }
  return task;
}

}  // namespace lockstep::trainers
