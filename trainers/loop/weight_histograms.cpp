#include "trainers/loop/weight_histograms.h"

#include <string>
#include <vector>

#include "core/transfer.h"

namespace lockstep::trainers {

void log_histograms(const nn::Module& model, float loss_scale, int64_t step, RunLog& log) {
  std::vector<Tensor> held;
  std::vector<NamedValues> tensors;
  const auto add = [&](const std::string& name, const Tensor& tensor) {
    held.push_back(tensor);
    tensors.push_back({.name = name, .values = held.back().span<float>()});
  };
  for (const nn::NamedParameter& parameter : model.named_parameters()) {
    add("weight/" + parameter.name, to_cpu(parameter.var.value()));
    const Tensor& gradient = parameter.var.grad();
    if (!gradient.defined()) continue;
    Tensor unscaled = Tensor::empty(gradient.shape(), Dtype::kF32);
    const Tensor scaled = to_cpu(gradient);
    for (int64_t i = 0; i < scaled.numel(); ++i) {
      unscaled.data<float>()[i] = scaled.data<float>()[i] / loss_scale;
    }
    add("grad/" + parameter.name, unscaled);
  }
  log.append_histograms(step, tensors);
}

}  // namespace lockstep::trainers
