// Samples in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/tensor.h"
#include "data/dataset.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// f32 samples, which a network gets as they are, with f32 targets or labels. Refers to the tensors'
// memory, which must not change meanwhile.
class TensorDataset : public Dataset {
 public:
  // Shapes: inputs (N,F) or (N,C,H,W) f32, in memory as every Tensor (from_row_major() gives that
  // of an array in NCHW order); targets (N) or (N,K) f32, which a loss gets as (N,K), or labels (N)
  // i32 from 0. Errors: ShapeError, DtypeError.
  TensorDataset(std::string name, Tensor inputs, Tensor targets);

  std::string name() const override { return name_; }
  int64_t size() const override { return inputs_.shape()[0]; }
  int64_t classes() const override { return classes_; }  // 0: there are targets
  ImageShape image_shape() const override;
  Dtype dtype() const override { return Dtype::kF32; }
  int64_t target_size() const override { return classes_ > 0 ? 0 : targets_.shape().stride0(); }
  int32_t label(int64_t i) const override;
  void read_target(int64_t i, std::span<float> target) const override;
  void read(int64_t i, std::span<uint8_t> bytes) const override;
  std::string digest() const override;

 private:
  const std::string name_;
  const Tensor inputs_, targets_;
  int64_t classes_ = 0;
};

}  // namespace lockstep::data
#pragma GCC visibility pop
