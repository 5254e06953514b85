// A call runs one plan per shard. Alignments in a plan's key follow from shapes, not from a shard's
// position in its batch, so that results do not change with the number of ranks.
#include "kernels/linear/linear_cublaslt.h"

#include <algorithm>
#include <memory>

#include "core/cuda/device.h"
#include "core/round_up.h"
#include "kernels/elementwise/convert_rows.h"
#include "kernels/elementwise/fill.h"
#include "kernels/linear/add_bias.h"
#include "kernels/linear/cublaslt_plan.h"
#include "kernels/support/shard_plans.h"

namespace lockstep::kernels::cublaslt {
namespace {

constexpr size_t kMaxAlignment = 16;  // the widest access of a kernel
constexpr size_t kWorkspaceAlignment = 256;

using LinearPlans = ShardPlans<LinearPlan>;

struct StreamHandle final : Plan {
  StreamHandle() : owned(make(), api().destroy) {}

  static cublasLtHandle_t make() {
    lockstep::cuda::ensure_device();
    cublasLtHandle_t made = nullptr;
    check(api().create(&made), "a handle");
    return made;
  }

  std::unique_ptr<cublasLtContext, decltype(&cublasLtDestroy)> owned;
};

LinearPlans plans_of(Stream& stream, const Shards& shards, const LinearProblem& problem) {
  const cublasLtHandle_t handle =
      stream
          .plan<StreamHandle>({.op = "cublaslt_handle"},
                              [] { return std::make_unique<StreamHandle>(); })
          .owned.get();
  const auto make = [&](int64_t images) {
    LinearProblem shard = problem;
    shard.images = images;
    return std::make_unique<LinearPlan>(handle, shard);
  };
  return {stream, shards, problem.key(), make};
}

// The alignment of all rows of a tensor: the largest power of two that divides their addresses, at
// most kMaxAlignment.
int64_t row_alignment(const Tensor& tensor) {
  const size_t places =
      reinterpret_cast<size_t>(tensor.bytes()) | row_bytes(tensor) | kMaxAlignment;
  return static_cast<int64_t>(places & (~places + 1));
}

size_t scratch_bytes(const LinearPlans& plans) {
  const size_t most = plans.largest([](const LinearPlan& plan) { return plan.workspace_bytes(); });
  return round_up(most, kWorkspaceAlignment);
}

// Returns the bias in the result's type, which cuBLASLt requires.
const void* bias_of(Stream& stream, const Tensor& bias, Dtype dtype, std::byte* scratch) {
  if (!bias.defined()) return nullptr;
  const bool is_aligned = reinterpret_cast<size_t>(bias.bytes()) % kBiasAlignment == 0;
  if (dtype == Dtype::kF32 && is_aligned) return bias.bytes();
  cuda::convert_rows(
      stream,
      {.count = 1, .to_type = dtype, .from_channels = bias.numel(), .to_channels = bias.numel()},
      bias.bytes(),
      scratch);
  return scratch;
}

}  // namespace

bool is_available() {
  return lockstep::cuda::has_library(soname());
}

std::string version() {
  return api().version();
}

void linear_forward(Stream& stream,
                    const Shards& shards,
                    const Tensor& in,
                    const Tensor& weight,
                    const Tensor& bias,
                    Tensor& out) {
  const LinearPlans plans = plans_of(stream,
                                     shards,
                                     {.pass = LinearPass::kForward,
                                      .dtype = in.dtype(),
                                      .inputs = weight.shape()[1],
                                      .outputs = weight.shape()[0],
                                      .has_bias = bias.defined(),
                                      .alignment_a = row_alignment(weight),
                                      .alignment_b = row_alignment(in),
                                      .alignment_d = row_alignment(out)});
  const size_t scratch = scratch_bytes(plans);
  std::byte* const workspace = stream.workspace(scratch + bias.nbytes(), 0).shared;
  const void* const offsets = bias_of(stream, bias, in.dtype(), workspace + scratch);
  for (int64_t k = 0; k < shards.local(); ++k) {
    if (shards.count(k) == 0) continue;
    plans[plans.find(shards.count(k))].execute({.a = weight.bytes(),
                                                .b = shard_rows(in, shards, k),
                                                .d = shard_rows(out, shards, k),
                                                .bias = offsets},
                                               workspace,
                                               stream.cuda());
  }
}

void linear_backward_data(Stream& stream,
                          const Shards& shards,
                          const Tensor& grad_out,
                          const Tensor& weight,
                          Tensor& grad_in) {
  const LinearPlans plans = plans_of(stream,
                                     shards,
                                     {.pass = LinearPass::kBackwardData,
                                      .dtype = weight.dtype(),
                                      .inputs = weight.shape()[1],
                                      .outputs = weight.shape()[0],
                                      .alignment_a = row_alignment(weight),
                                      .alignment_b = row_alignment(grad_out),
                                      .alignment_d = row_alignment(grad_in)});
  std::byte* const workspace = stream.workspace(scratch_bytes(plans), 0).shared;
  for (int64_t k = 0; k < shards.local(); ++k) {
    if (shards.count(k) == 0) continue;
    plans[plans.find(shards.count(k))].execute({.a = weight.bytes(),
                                                .b = shard_rows(grad_out, shards, k),
                                                .d = shard_rows(grad_in, shards, k)},
                                               workspace,
                                               stream.cuda());
  }
}

void linear_backward_weight(Stream& stream,
                            const Shards& shards,
                            const Tensor& in,
                            const Tensor& grad_out,
                            Tensor& grad_weight,
                            Tensor& grad_bias) {
  const LinearPlans plans = plans_of(stream,
                                     shards,
                                     {.pass = LinearPass::kBackwardWeight,
                                      .dtype = in.dtype(),
                                      .inputs = in.shape()[1],
                                      .outputs = grad_out.shape()[1],
                                      .alignment_a = row_alignment(in),
                                      .alignment_b = row_alignment(grad_out),
                                      .alignment_d = row_alignment(grad_weight)});
  std::byte* const workspace = stream.workspace(scratch_bytes(plans), 0).shared;
  for (int64_t k = 0; k < shards.local(); ++k) {
    if (shards.count(k) == 0) {
      Tensor leaf = grad_weight.slice(k, 1);
      cuda::fill(stream, 0.0F, leaf);
      continue;
    }
    plans[plans.find(shards.count(k))].execute({.a = shard_rows(in, shards, k),
                                                .b = shard_rows(grad_out, shards, k),
                                                .d = shard_leaf(grad_weight, k)},
                                               workspace,
                                               stream.cuda());
  }
  if (grad_bias.defined()) cuda::add_bias_backward(stream, shards, grad_out, grad_bias);
}

}  // namespace lockstep::kernels::cublaslt
