// What a training does, whatever its data, its network and its ranks are.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device.h"
#include "engine/settings/exchange_config.h"
#include "engine/settings/optimizer_config.h"
#include "engine/settings/precision_config.h"
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

struct TrainingSettings {
  Device device = Device::kCpu;
  double epochs = 0;                 // the last one may be a part
  int64_t start_epoch = 0;           // the first one's number
  std::optional<int64_t> max_steps;  // of the whole run, a resumed part included
  OptimizerConfig optimizer;
  LossConfig loss;
  Seeds seeds;
  PrecisionConfig precision;
  ExchangeConfig exchange;
  int64_t workers = 0;                     // threads that read images ahead
  int64_t val_batch_size = 0;              // images per batch of an evaluation
  TestViews test_views = TestViews::kOne;  // in every evaluation

  int64_t steps(int64_t per_epoch) const { return steps_of(epochs, per_epoch); }
  int64_t epoch_count() const { return steps_of(epochs, 1); }  // with the last one
};

}  // namespace lockstep
