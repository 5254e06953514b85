// Argument checks that every op makes before it dispatches, and the costs that it declares to the
// ledger.
#pragma once

#include <initializer_list>
#include <string_view>

#include "core/shards.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace lockstep::kernels {

struct NamedTensor {
  std::string_view name;
  const Tensor& tensor;
};

// The total bytes of tensors, for the ledger.
template <class... Tensors>
int64_t bytes_of(const Tensors&... tensors) {
  return static_cast<int64_t>((tensors.nbytes() + ...));
}

// Messages name the op, the argument and both values:
//   "[max_pool2d_forward] out: shape (8,64,27,27), expected (8,64,28,28)"
class OpCheck {
 public:
  // `op` is a string literal.
  OpCheck(std::string_view op, Stream& stream) : op_(op), stream_(stream) {}

  // Errors: DtypeError unless `tensor` has one of `allowed`; DeviceError unless it is on the
  // stream's device.
  void dtype(std::string_view name,
             const Tensor& tensor,
             std::initializer_list<Dtype> allowed) const;
  // dtype() of f32, f16 and bf16.
  void floating(std::string_view name, const Tensor& tensor) const;
  // Errors: DeviceError unless the stream runs on `device`.
  void on(Device device) const;
  // Errors: ShapeError, DtypeError, DeviceError.
  void like(std::string_view name, const Tensor& tensor, const Shape& shape, Dtype dtype) const;
  // Errors: ShapeError unless the rank is `rank`.
  void rank(std::string_view name, const Tensor& tensor, int rank) const;
  // Errors: ShapeError unless the shards cover `rows`.
  void covers(const Shards& shards, int64_t rows) const;
  // Errors: ShapeError with `requirement` when `ok` is false.
  void require(bool ok, std::string_view requirement) const;

  // Records the call's cost in the ledger of a dry stream. Returns true when the stream is dry:
  // nothing to run.
  bool dry(int64_t flops, int64_t bytes, const PlanKey& plan = {}) const;
  // As dry(), for a fused op.
  bool dry_fused(int64_t flops, int64_t bytes, int64_t unfused_bytes) const;

 private:
  bool record(const LedgerEntry& cost) const;

  std::string_view op_;
  Stream& stream_;
};

}  // namespace lockstep::kernels
