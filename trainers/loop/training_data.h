// Opens data sets as flags name them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "engine/observe/fault.h"
#include "trainers/config/run_request.h"
#include "trainers/report/console.h"

namespace lockstep::trainers {

// Opens the data sets that --dataset and DIR name. For `synthetic` these are random images as the
// network wants them: 28 x 28 gray (60,000 and 10,000) for train_convnet's networks; 32 x 32 in
// color (50,000 and 10,000, 10 classes) for CIFAR's networks and under --cifar-stem; else
// ImageNet's 224 x 224 (1,281,167 and 50,000, 1,000 classes), as main.py's --dummy. For an
// evaluation, opens only the test split. A fault may slow photos down. Errors: those of
// data::open_dataset and of augmentation().
data::DatasetPair open_training_data(const RunRequest& request,
                                     const std::optional<Fault>& fault = {});

// Returns a note where the set has no images of some of its named classes; else nothing.
std::optional<std::string> note_on_absent_classes(const data::Dataset& images);

// Returns a function that warns about a skipped image. Borrows the console.
std::function<void(const std::string& text)> warn_of_images(Console& console);

}  // namespace lockstep::trainers
