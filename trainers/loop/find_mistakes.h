// Finds an evaluation's mistakes while it runs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/communicator.h"
#include "data/dataset.h"
#include "engine/evaluation/evaluate.h"
#include "trainers/report/mistakes.h"

namespace lockstep::trainers {

// Counts one rank's images. The predicted class is the one with the largest logit, the first of
// equal ones, as in softmax_cross_entropy's target_rank. An image with a NaN logit has no predicted
// class.
class MistakeFinder {
 public:
  // More classes than this have no confusion matrix.
  static constexpr int64_t kMaxClasses = 100;

  explicit MistakeFinder(int64_t classes);

  void add(const EvaluatedImages& images);
  // Combines all ranks' counts, the same on each: sums of integers, and the worst images by loss,
  // then by index. A collective call.
  Mistakes over_ranks(Communicator& ranks) const;

 private:
  int64_t classes_;
  std::vector<int64_t> confusion_;
  std::vector<Mistake> worst_;
};

// Adds the pictures of the worst images, reduced to at most 96 pixels per side.
void add_pictures(const data::Dataset& images, Mistakes& mistakes);

}  // namespace lockstep::trainers
