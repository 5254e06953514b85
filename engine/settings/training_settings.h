// Settings of a training, apart from its data, its network and its ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device.h"
#include "engine/settings/exchange_config.h"
#include "engine/settings/optimizer_options.h"
#include "engine/settings/precision_config.h"
#include "engine/settings/schedule_options.h"
#include "engine/settings/test_views.h"

namespace lockstep {

struct Seeds {
  uint64_t run = 0;      // of augmentation, dropout and mixup
  uint64_t order = 0;    // of the images
  uint64_t weights = 0;  // at the start

  bool operator==(const Seeds& other) const = default;
};

struct LossConfig {
  double label_smoothing = 0;
  bool binary = false;                    // cross-entropy of each class alone, with sigmoids
  std::optional<float> target_threshold;  // of its targets; absent: they are as they are
  // Divides losses once more: by the images of a group, or of a test batch.
  bool div_batch = false;
};

// How the network is evaluated.
struct TestOptions {
  int64_t batch = 250;  // images
  TestViews views = TestViews::kOne;
};

// Steps of so many epochs; the last of them may be cut short.
int64_t steps_of(double epochs, int64_t steps_per_epoch);

struct TrainingSettings {
  Device device = Device::kCpu;
  double epochs = 1;                 // the last one may be a part
  int64_t start_epoch = 0;           // the first one's number
  std::optional<int64_t> max_steps;  // of the whole run, a resumed part included
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  LossConfig loss;
  Seeds seeds;
  PrecisionConfig precision;
  ExchangeConfig exchange;
  int64_t workers = 0;  // threads that read images ahead
  TestOptions test;

  int64_t steps(int64_t per_epoch) const { return steps_of(epochs, per_epoch); }
  int64_t epoch_count() const { return steps_of(epochs, 1); }  // with the last one
};

}  // namespace lockstep
