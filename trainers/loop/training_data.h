// The images of a run, what happens to them on their way into a batch, and which are skipped.
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

// The sets that --dataset and DIR name; for `synthetic` random images as the network wants them:
// 28 x 28 gray (60,000 and 10,000) for train_convnet's networks, 32 x 32 in color (50,000 and
// 10,000, 10 classes) for CIFAR's and under --cifar-stem, else ImageNet's 224 x 224 (1,281,167 and
// 50,000, 1,000 classes), as main.py's --dummy. For an evaluation the test split alone.
// A fault may slow photos down. Errors: those of data::open_dataset and of augmentation().
data::DatasetPair open_training_data(const RunRequest& request,
                                     const std::optional<Fault>& fault = {});

// Warns of an image that is skipped. Borrows the console.
std::function<void(const std::string& text)> warn_of_images(Console& console);

// The images that a run skips, over all ranks. A rank notes what its batches skipped when a step
// uses them, not when a thread met it, and ranks put their notes together where they meet anyway:
// at the same step, whatever their number, all know the same images.
class SkippedPhotos {
 public:
  // `warn` hears of each image once, on rank 0.
  SkippedPhotos(int64_t dataset_size, std::function<void(const std::string&)> warn)
      : limit_(data::skip_limit(dataset_size)), warn_(std::move(warn)) {}

  void note(std::span<const data::SkippedImage> skipped);
  // Not yet known to other ranks.
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
