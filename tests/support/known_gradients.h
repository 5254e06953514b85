// A model whose gradients are known, and the sum that their reduction must give.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/autograd.h"
#include "core/communicator.h"
#include "kernels/elementwise/add.h"
#include "tests/reference/cast.h"
#include "tests/reference/tree_sum.h"
#include "tests/support/collectives.h"
#include "tests/support/float_types.h"

namespace lockstep::testing {

// A leaf of the sum: canceling values, one of them -0. Leaves are numbered micro-step by
// micro-step, so one shard in n micro-steps has the same leaves as n shards in one micro-step.
inline std::vector<float> known_leaf(int64_t number, int64_t count, float scale) {
  std::vector<float> values = canceling_values(static_cast<int>(number), count);
  for (float& value : values) value *= scale;
  if (count > 2) values[2] = -0.0F;
  return values;
}

struct KnownSum {
  int64_t shards = 8;
  int64_t micro_steps = 1;
  Dtype wire = Dtype::kF32;
  float scale = 1;
  float predivide = 1;
  std::set<int64_t> zero_micro_steps = {};  // whose leaves are zero
};

// The definition of the sum: a tree over the shards, each of whose leaves is a tree over the
// micro-steps.
inline std::vector<float> known_sum(const KnownSum& sum, int64_t count) {
  std::vector<std::vector<std::vector<float>>> leaves;  // [shard][micro-step]
  for (int64_t k = 0; k < sum.shards; ++k) {
    auto& steps = leaves.emplace_back();
    for (int64_t a = 0; a < sum.micro_steps; ++a) {
      const float scale = sum.zero_micro_steps.contains(a) ? 0.0F : sum.scale;
      steps.push_back(known_leaf(a * sum.shards + k, count, scale));
      if (scale == 0) std::ranges::fill(steps.back(), 0.0F);
    }
  }
  const reference::FloatFormat format = format_of(sum.wire);
  std::vector<float> sums(static_cast<size_t>(count));
  for (size_t i = 0; i < sums.size(); ++i) {
    std::vector<double> shards;
    for (const auto& steps : leaves) {
      std::vector<double> element;
      for (const std::vector<float>& leaf : steps) element.push_back(leaf[i] * (1 / sum.predivide));
      shards.push_back(reference::tree_sum(element, format));
    }
    sums[i] = static_cast<float>(reference::tree_sum(shards, format)) * sum.predivide;
  }
  return sums;
}

// Five parameters with sizes around the alignment of the views. Each rank has an equal number of
// shards.
class KnownGradients {
 public:
  explicit KnownGradients(Communicator& peers, int64_t shards = 8, int threads = 1)
      : stream(Device::kCpu, threads) {
    const int64_t local = shards / peers.size();
    shards_ = Shards::cut(local, local, 1);
    shards_.total = shards;
    shards_.first = peers.rank() * local;
    for (const Shape& shape : {Shape{1}, Shape{63}, Shape{4, 4, 2, 2}, Shape{5, 13}, Shape{300}}) {
      parameters.emplace_back(Tensor::zeros(shape, Dtype::kF32), true);
    }
  }

  struct Pass {
    int64_t micro_step = 0;
    float scale = 1;
    std::set<size_t> unused = {};
    std::vector<size_t> order = {4, 3, 2, 1, 0};  // in which the gradients become ready
  };

  void backward() { backward(Pass{}); }
  void backward(const Pass& pass) {
    auto batch = std::make_shared<Batch>();
    batch->stream = &stream;
    batch->shards = shards_;
    batch->recording = true;
    batch->accumulate = kernels::add;
    const Tensor leaves = Tensor::zeros({shards_.local()}, Dtype::kF32);
    Var chain(leaves, batch);
    for (size_t left = pass.order.size(); left-- > 0;) {
      const size_t i = pass.order[left];
      if (pass.unused.contains(i)) continue;
      chain = record(
          "known", leaves, {chain, parameters[i]}, [=, this](Stream&, const Tensor&, Grads& grads) {
            if (grads.wants(0)) grads.overwrite(0);
            if (grads.wants(1)) write_leaves(grads.overwrite(1), pass);
          });
    }
    chain.backward();
  }

  Stream stream;
  std::vector<Var> parameters;
  const std::vector<std::string> names = {"a", "b", "c", "d", "e"};

 private:
  void write_leaves(Tensor& leaves, const Pass& pass) const {
    for (int64_t k = 0; k < shards_.local(); ++k) {
      const int64_t number = pass.micro_step * shards_.total + shards_.first + k;
      std::ranges::copy(known_leaf(number, leaves.shape()[1], pass.scale),
                        leaves.slice(k, 1).data<float>());
    }
  }

  Shards shards_;
};

// Expects the same bits; all NaNs are equal.
inline void expect_same(const Tensor& got, const std::vector<float>& want) {
  ASSERT_EQ(got.numel(), std::ssize(want));
  for (size_t i = 0; i < want.size(); ++i) {
    const float value = got.data<float>()[i];
    if (std::isnan(want[i]) && std::isnan(value)) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(want[i]))
        << "element " << i << ": " << value << ", expected " << want[i];
  }
}

}  // namespace lockstep::testing
