// Sums leaves in tree order as they come, one after another.
#pragma once

#include <cstdint>
#include <vector>

#include "core/stream.h"
#include "core/tensor.h"

#pragma GCC visibility push(default)
namespace lockstep::comm {

// A binary counter: equal complete subtrees are merged as soon as both are there, so that n leaves
// need memory for log2(n) + 1 at most. Order: core/tree.h. Nodes are rounded to the leaves' dtype.
// Thread safety: none.
class TreeCounter {
 public:
  // Takes the leaf's memory over. Requires: leaves alike in shape and dtype.
  void push(Stream& stream, Tensor leaf);
  // The sum; the next starts over. Requires: a leaf at least.
  Tensor take(Stream& stream);

 private:
  void merge_last_two(Stream& stream);

  std::vector<Tensor> nodes_;  // complete subtrees, left to right, each smaller than the last
  int64_t leaves_ = 0;
};

}  // namespace lockstep::comm
#pragma GCC visibility pop
