#include "kernels/conv/convolution_problem.h"

#include <fmt/core.h>

#include "core/check.h"
#include "core/round_up.h"

namespace lockstep::kernels {
namespace {

constexpr const char* kOp = "convolution";
constexpr int64_t kBias = 1, kSums = 2, kNorm = 4, kGroups = 8;  // in a key; kGroups a group

// "3", or "3x5" if they differ.
std::string pair_text(int64_t height, int64_t width) {
  return height == width ? fmt::format("{}", height) : fmt::format("{}x{}", height, width);
}

}  // namespace

std::string_view name_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward:
      return "forward";
    case ConvolutionPass::kBackwardData:
      return "backward data";
    case ConvolutionPass::kBackwardWeight:
      return "backward weight";
  }
  return "?";
}

ConvolutionProblem problem_of(const Conv2dForwardArgs& args) {
  return {.pass = ConvolutionPass::kForward,
          .dtype = args.in.dtype(),
          .in = args.in.shape(),
          .weight = args.weight.shape(),
          .params = args.params,
          .has_bias = args.bias.defined()};
}

ConvolutionProblem problem_of(const Conv2dBackwardWeightArgs& args) {
  return {.pass = ConvolutionPass::kBackwardWeight,
          .dtype = args.in.dtype(),
          .in = args.in.shape(),
          .weight = args.weight_shape,
          .params = args.params};
}

ConvolutionProblem ConvolutionProblem::padded() const {
  constexpr int64_t kMultiple = 4;
  if (params.groups > 1) return *this;
  const int64_t channels = round_up(in[1], kMultiple);
  ConvolutionProblem result = *this;
  result.in = {in[0], channels, in[2], in[3]};
  result.weight = {weight[0], channels, weight[2], weight[3]};
  return result;
}

PlanKey ConvolutionProblem::key() const {
  return {.op = kOp,
          .values = {in[0],
                     in[1],
                     in[2],
                     in[3],
                     weight[0],
                     weight[2],
                     weight[3],
                     params.stride_h,
                     params.stride_w,
                     params.pad_h,
                     params.pad_w,
                     (has_bias ? kBias : 0) | (gives_sums ? kSums : 0) | (norms_in ? kNorm : 0) |
                         kGroups * params.groups,
                     static_cast<int64_t>(dtype),
                     static_cast<int64_t>(pass)}};
}

ConvolutionProblem ConvolutionProblem::of(const PlanKey& key) {
  const auto& v = key.values;
  LS_CHECK(key.op != nullptr && std::string_view(key.op) == kOp,
           "[convolution] key: of another op");
  const int64_t groups = v[11] / kGroups;
  return {.pass = static_cast<ConvolutionPass>(v[13]),
          .dtype = static_cast<Dtype>(v[12]),
          .in = {v[0], v[1], v[2], v[3]},
          .weight = {v[4], v[1] / groups, v[5], v[6]},
          .params = {.stride_h = static_cast<int>(v[7]),
                     .stride_w = static_cast<int>(v[8]),
                     .pad_h = static_cast<int>(v[9]),
                     .pad_w = static_cast<int>(v[10]),
                     .groups = static_cast<int>(groups)},
          .has_bias = (v[11] & kBias) != 0,
          .gives_sums = (v[11] & kSums) != 0,
          .norms_in = (v[11] & kNorm) != 0};
}

std::string ConvolutionProblem::text() const {
  return fmt::format("{} {} {}x{}x{}x{} -> {}, {}x{}, stride {}, pad {}{}{}{}{}",
                     name_of(pass),
                     lockstep::name_of(dtype),
                     in[0],
                     in[1],
                     in[2],
                     in[3],
                     weight[0],
                     weight[2],
                     weight[3],
                     pair_text(params.stride_h, params.stride_w),
                     pair_text(params.pad_h, params.pad_w),
                     params.groups > 1 ? fmt::format(", {} groups", params.groups) : "",
                     has_bias ? ", bias" : "",
                     norms_in ? ", norm" : "",
                     gives_sums ? ", sums" : "");
}

}  // namespace lockstep::kernels
