// Small ops on the tape, and batches with one image per shard.
#pragma once

#include <gtest/gtest.h>

#include "core/autograd.h"

namespace lockstep::testing {

inline void accumulate(Stream&, const Tensor& src, Tensor& dst) {
  for (int64_t i = 0; i < dst.numel(); ++i) dst.data<float>()[i] += src.data<float>()[i];
}

inline Tensor vector_of(std::initializer_list<float> values) {
  Tensor tensor = Tensor::empty({static_cast<int64_t>(values.size())}, Dtype::kF32);
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

inline std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

// out = x * w, where w is a single number; each element of x is an image.
inline Var scale(const Var& x, const Var& w) {
  const Tensor in = x.value();
  const float factor = w.value().data<float>()[0];
  Tensor out = Tensor::empty(in.shape(), Dtype::kF32);
  for (int64_t i = 0; i < in.numel(); ++i) out.data<float>()[i] = in.data<float>()[i] * factor;
  return record("scale", out, {x, w}, [=](Stream&, const Tensor& grad_out, Grads& grads) {
    const float* g = grad_out.data<float>();
    if (grads.wants(0)) {
      float* grad_in = grads.overwrite(0).data<float>();
      for (int64_t i = 0; i < in.numel(); ++i) grad_in[i] = g[i] * factor;
    }
    if (grads.wants(1)) {
      Tensor& leaves = grads.overwrite(1);
      for (int64_t k = 0; k < leaves.shape()[0]; ++k) {
        leaves.data<float>()[k] = g[k] * in.data<float>()[k];  // one image per shard
      }
    }
  });
}

inline Var sum(const Var& a, const Var& b) {
  Tensor out = Tensor::empty(a.shape(), Dtype::kF32);
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.data<float>()[i] = a.value().data<float>()[i] + b.value().data<float>()[i];
  }
  return record("sum", out, {a, b}, [](Stream&, const Tensor& grad_out, Grads& grads) {
    for (const size_t i : {0U, 1U}) {
      if (!grads.wants(i)) continue;
      Tensor& grad = grads.overwrite(i);
      std::copy_n(grad_out.data<float>(), grad.numel(), grad.data<float>());
    }
  });
}

class Autograd : public ::testing::Test {
 protected:
  // One image per shard.
  Var input(std::initializer_list<float> values,
            bool recording = true,
            TapeListener* listener = nullptr) {
    auto batch = std::make_shared<Batch>();
    batch->stream = &stream_;
    const auto images = static_cast<int64_t>(values.size());
    batch->shards = Shards::cut(images, images, 1);
    batch->recording = recording;
    batch->accumulate = accumulate;
    batch->listener = listener;
    return Var(vector_of(values), batch);
  }

  Stream stream_;
};

}  // namespace lockstep::testing
