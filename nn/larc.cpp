#include "nn/larc.h"

#include <algorithm>

#include "core/transfer.h"
#include "kernels/reduce/tensor_norms.h"
#include "nn/optimizer.h"

namespace lockstep::nn {

Larc::Larc(const std::vector<ParameterGroup>& groups, const LarcParams& params)
    : params_({.trust = static_cast<float>(params.trust_coefficient), .clip = params.clip}) {
  std::vector<float> decays;
  Device device = Device::kCpu;
  for (const ParameterGroup& group : groups) {
    decays.resize(decays.size() + group.parameters.size(), static_cast<float>(group.weight_decay));
    if (!group.parameters.empty()) device = group.parameters.front().var.value().device();
  }
  const Shape shape{std::ssize(decays)};
  Tensor on_cpu = Tensor::empty(shape, Dtype::kF32);
  std::ranges::copy(decays, on_cpu.data<float>());
  weight_decays_ = Tensor::empty(shape, Dtype::kF32, device);
  factors_ = Tensor::empty(shape, Dtype::kF32, device);
  overwrite(on_cpu, weight_decays_);
}

const Tensor& Larc::factors(Stream& stream,
                            const std::vector<ParameterGroup>& groups,
                            const kernels::StepControl& control,
                            double lr) {
  params_.lr = lr;
  params_.control = control;
  int64_t first = 0;
  for (const ParameterGroup& group : groups) {
    const int64_t count = std::ssize(group.parameters);
    if (count == 0) continue;
    std::vector<Tensor> tensors;
    std::vector<Tensor> gradients;
    for (const NamedParameter& parameter : group.parameters) {
      const Tensor& value = parameter.var.value();
      const Tensor& gradient = parameter.var.grad();
      tensors.push_back(value);
      gradients.push_back(gradient.defined() ? gradient : value);
    }
    tensors.insert(tensors.end(), gradients.begin(), gradients.end());
    Tensor norms = Tensor::empty({std::ssize(tensors) + 1}, Dtype::kF32, stream.device());
    kernels::tensor_norms(stream, tensors, norms);
    params_.control.lr_factor = group.lr_factor;
    Tensor factors = factors_.slice(first, count);
    kernels::larc_factors(stream, norms, weight_decays_.slice(first, count), params_, factors);
    first += count;
  }
  return factors_;
}

}  // namespace lockstep::nn
