#include "comm/tree_counter.h"

#include <utility>

#include "core/check.h"
#include "kernels/elementwise/add.h"

namespace lockstep::comm {

void TreeCounter::push(Stream& stream, Tensor leaf) {
  nodes_.push_back(std::move(leaf));
  ++leaves_;
  for (int64_t pairs = leaves_; pairs % 2 == 0; pairs /= 2) merge_last_two(stream);
}

Tensor TreeCounter::take(Stream& stream) {
  LS_CHECK(leaves_ > 0, "[tree_counter] take without leaves");
  while (nodes_.size() > 1) merge_last_two(stream);
  leaves_ = 0;
  Tensor root = std::move(nodes_.back());
  nodes_.clear();
  return root;
}

void TreeCounter::merge_last_two(Stream& stream) {
  const Tensor right = std::move(nodes_.back());
  nodes_.pop_back();
  kernels::add(stream, right, nodes_.back());
}

}  // namespace lockstep::comm
