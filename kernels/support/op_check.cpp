#include "kernels/support/op_check.h"

#include <algorithm>

#include <fmt/core.h>

#include "kernels/support/declare_op.h"

namespace lockstep::kernels {

const Tensor no_tensor;

void OpCheck::dtype(std::string_view name,
                    const Tensor& tensor,
                    std::initializer_list<Dtype> allowed) const {
  if (tensor.device() != stream_.device()) {
    throw DeviceError(fmt::format("[{}] {}: on {}, the stream runs on {}",
                                  op_,
                                  name,
                                  name_of(tensor.device()),
                                  name_of(stream_.device())));
  }
  if (std::ranges::find(allowed, tensor.dtype()) != allowed.end()) return;
  std::string names;
  for (const Dtype dtype : allowed) {
    if (!names.empty()) names += " or ";
    names += name_of(dtype);
  }
  throw DtypeError(
      fmt::format("[{}] {}: dtype {}, expected {}", op_, name, name_of(tensor.dtype()), names));
}

void OpCheck::floating(std::string_view name, const Tensor& tensor) const {
  dtype(name, tensor, {Dtype::kF32, Dtype::kF16, Dtype::kBF16});
}

void OpCheck::on(Device device) const {
  if (stream_.device() == device) return;
  throw DeviceError(fmt::format(
      "[{}] the stream runs on {}, expected {}", op_, name_of(stream_.device()), name_of(device)));
}

void OpCheck::like(std::string_view name,
                   const Tensor& tensor,
                   const Shape& shape,
                   Dtype dtype_wanted) const {
  dtype(name, tensor, {dtype_wanted});
  if (!tensor.defined() || tensor.shape() != shape) {
    throw ShapeError(fmt::format(
        "[{}] {}: shape {}, expected {}", op_, name, to_string(tensor.shape()), to_string(shape)));
  }
}

void OpCheck::rank(std::string_view name, const Tensor& tensor, int rank) const {
  if (tensor.shape().rank() != rank) {
    throw ShapeError(fmt::format(
        "[{}] {}: shape {}, expected rank {}", op_, name, to_string(tensor.shape()), rank));
  }
}

void OpCheck::covers(const Shards& shards, int64_t rows) const {
  if (shards.images() != rows) {
    throw ShapeError(fmt::format(
        "[{}] shards: they cover {} rows, the batch has {}", op_, shards.images(), rows));
  }
}

void OpCheck::require(bool ok, std::string_view requirement) const {
  if (!ok) throw ShapeError(fmt::format("[{}] required: {}", op_, requirement));
}

bool OpCheck::dry(int64_t flops, int64_t bytes, const PlanKey& plan) const {
  return record({.op = op_, .flops = flops, .bytes = bytes, .unfused_bytes = bytes, .plan = plan});
}

bool OpCheck::dry_fused(int64_t flops, int64_t bytes, int64_t unfused_bytes) const {
  return record({.op = op_, .flops = flops, .bytes = bytes, .unfused_bytes = unfused_bytes});
}

bool OpCheck::record(const LedgerEntry& cost) const {
  if (stream_.device() != Device::kDry) return false;
  stream_.ledger().push_back(cost);
  return true;
}

}  // namespace lockstep::kernels
