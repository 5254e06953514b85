// The images of a run and what happens to them on their way into a batch.
#pragma once

#include <optional>
#include <string>

#include "core/augmentation.h"
#include "data/dataset.h"
#include "trainers/config/run_request.h"
#include "trainers/debug/fault.h"

namespace lockstep::trainers {

// The sets that --dataset and DIR name; for `synthetic` random images as the network wants them:
// 28 x 28 gray (60,000 and 10,000) for train_convnet's networks, 32 x 32 in color (50,000 and
// 10,000, 10 classes) for CIFAR's and under --cifar-stem, else ImageNet's 224 x 224 (1,281,167 and
// 50,000, 1,000 classes), as main.py's --dummy.
// A fault may slow photos down. Errors: those of data::open_dataset.
data::DatasetPair open_training_data(const RunRequest& request,
                                     const std::optional<Fault>& fault = {});

// CIFAR-10 and shapes: a crop out of the image padded by 4, and a flip; all others: none.
Augmentation augmentation(uint64_t seed, const data::Dataset& train);

// Warns of an image that is skipped, on stderr.
void warn_of_images(const std::string& text);

}  // namespace lockstep::trainers
