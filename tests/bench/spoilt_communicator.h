// Ranks that get their sums wrong.
#pragma once

#include "comm/single.h"

namespace lockstep::bench {

// A lone rank whose sums can be spoilt, and which counts its calls.
class SpoiltCommunicator : public comm::SingleCommunicator {
 public:
  void barrier() override { ++barriers; }
  std::unique_ptr<Work> start_all_reduce(const AllReduce& what) override {
    ++all_reduces;
    Tensor values = what.values;
    if (spoil && values.numel() > 0) values.span<float>().back() = 123456.5F;
    return comm::SingleCommunicator::start_all_reduce(what);
  }

  bool spoil = false;
  int barriers = 0;
  int all_reduces = 0;
};

}  // namespace lockstep::bench
