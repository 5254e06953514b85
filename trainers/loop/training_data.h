// Opens data sets as flags name them, and agrees on images to skip.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "core/communicator.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "trainers/config/run_request.h"
#include "trainers/debug/fault.h"
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

// The images that a run skips, over all ranks. A rank notes the images that its batches skipped
// when a step uses these batches, not when a loader thread meets them, and the ranks combine their
// notes where they communicate anyway. So at the same step, whatever their number, all ranks know
// the same images.
class SkippedPhotos {
 public:
  // `warn` is called once for each image, on rank 0.
  SkippedPhotos(int64_t dataset_size, std::function<void(const std::string&)> warn)
      : limit_(data::skip_limit(dataset_size)), warn_(std::move(warn)) {}

  void note(std::span<const data::SkippedImage> skipped);
  // The number of notes that other ranks do not know yet.
  int64_t noted() const { return static_cast<int64_t>(notes_.size()); }
  // A collective call. Errors: on all ranks, DataError when more are skipped than may be.
  void agree(Communicator& ranks);

 private:
  const int64_t limit_;
  const std::function<void(const std::string&)> warn_;
  std::map<int64_t, std::string> notes_;  // why, by index
  std::set<int64_t> known_;               // to all ranks
};

}  // namespace lockstep::trainers
