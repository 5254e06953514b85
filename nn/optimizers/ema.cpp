#include <utility>

#include "kernels/elementwise/copy.h"
#include "kernels/optim/weight_averages.h"
#include "nn/autocast.h"
#include "nn/optimizer.h"

namespace lockstep::nn {

Ema::Ema(std::unique_ptr<Optimizer> fast, std::vector<StateEntry> buffers, double decay)
    : AveragingOptimizer(
          std::move(fast), std::move(buffers), {.suffix = "ema", .counter = "ema.step"}),
      decay_(decay) {}

void Ema::step(Stream& stream) {
  const bool begins = !std::exchange(has_begun_, true) && counter() == 0 && !is_restored();
  if (begins) copy_values(stream);
  step_fast(stream);
  std::vector<kernels::EmaSlot> slots;
  slots.reserve(averages().size());
  for (const Tensor& tensor : values()) {
    slots.push_back({.param = tensor, .ema = averages()[slots.size()]});
  }
  const Tensor& state = control().state;
  if (!state.defined()) ++counter();  // else the device counts
  kernels::ema_update(
      stream, slots, {.decay = decay_, .step = state.defined() ? 1 : counter(), .state = state});
}

std::vector<Tensor> Ema::put_into_model(Stream& stream) const {
  std::vector<Tensor> before;
  for (const Tensor& tensor : values()) {
    before.push_back(Tensor::empty(tensor.shape(), tensor.dtype(), tensor.device()));
    kernels::copy(stream, tensor, before.back());
  }
  put_back(stream, averages());
  return before;
}

void Ema::put_back(Stream& stream, std::span<const Tensor> from) const {
  std::vector<Tensor> to = values();
  for (size_t i = 0; i < to.size(); ++i) kernels::copy(stream, from[i], to[i]);
  for (const ParameterGroup& group : groups()) refresh_copies(stream, group.parameters);
}

}  // namespace lockstep::nn
