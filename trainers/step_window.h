// Loss and counts of the steps since ranks last compared notes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/communicator.h"
#include "core/shards.h"
#include "nn/functional.h"

namespace lockstep::trainers {

struct WindowTotals {
  std::vector<float>
      losses;  // of each step, over all ranks; the bits do not depend on their number
  int64_t correct1 = 0;
  int64_t correct5 = 0;
  int64_t images = 0;
  bool stop = false;  // some rank was asked to stop
};

// Gathers a rank's steps and sums them over ranks on request, so that a step itself needs no
// message for them.
class StepWindow {
 public:
  void add(const nn::CrossEntropy& result);
  // Sums over ranks and starts a new window. All ranks must call, after as many steps.
  WindowTotals exchange(Communicator& ranks, bool stop);

 private:
  std::vector<float> losses_;
  int64_t correct1_ = 0;
  int64_t correct5_ = 0;
  int64_t images_ = 0;
};

}  // namespace lockstep::trainers
