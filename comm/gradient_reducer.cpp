#include "comm/gradient_reducer.h"

#include <utility>

#include <fmt/ranges.h>

#include "core/error.h"
#include "kernels/tree_sum.h"

namespace lockstep::comm {
namespace {

constexpr int64_t kAlignment = 256 / sizeof(float);  // elements

}  // namespace

GradientReducer::GradientReducer(Communicator& peers,
                                 Stream& stream,
                                 std::vector<Var> parameters,
                                 std::vector<std::string> names,
                                 ReducerOptions options)
    : peers_(peers),
      stream_(stream),
      parameters_(std::move(parameters)),
      names_(std::move(names)),
      options_(std::move(options)),
      ready_(parameters_.size()) {
  LS_CHECK(names_.size() == parameters_.size(),
           "[gradient_reducer] names: got {} for {} parameters",
           names_.size(),
           parameters_.size());
  std::vector<int64_t> offsets;
  int64_t total = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& value = parameters_[i].value();
    if (value.dtype() != Dtype::kF32) {
      throw DtypeError(fmt::format(
          "[gradient_reducer] {}: dtype {}, expected f32", names_[i], name_of(value.dtype())));
    }
    offsets.push_back(total);
    total += (value.numel() + kAlignment - 1) / kAlignment * kAlignment;
  }
  sums_ = Tensor::zeros({total}, Dtype::kF32, stream_.device());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    views_.push_back(sums_.slice(offsets[i], parameters_[i].value().numel()));
    parameters_[i].on_grad_ready([this, i](Var&) { on_grad_ready(i); });
  }
}

GradientReducer::~GradientReducer() {
  for (Var& parameter : parameters_) parameter.on_grad_ready({});
}

void GradientReducer::on_grad_ready(size_t parameter) {
  kernels::tree_sum(stream_, parameters_[parameter].grad(), views_[parameter]);
  ready_[parameter] = true;
}

void GradientReducer::next_micro_step() {
  throw InternalError("[gradient_reducer] micro-steps are not built yet");
}

void GradientReducer::finish() {
  check_complete();
  if (peers_.size() > 1) peers_.all_reduce_sum(sums_.span<float>());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (ready_[i]) parameters_[i].set_grad(views_[i].view(parameters_[i].shape()));
    ready_[i] = false;
  }
}

void GradientReducer::check_complete() const {
  std::vector<std::string> missing;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (ready_[i] || !parameters_[i].requires_grad()) continue;
    missing.push_back(fmt::format("{} ({})", names_[i], i));
  }
  if (missing.empty()) return;
  throw InternalError(
      fmt::format("{} of {} parameters got no gradient", missing.size(), parameters_.size()),
      fmt::format("the loss does not depend on {}", fmt::join(missing, ", ")),
      "use them in forward(), or freeze them with set_requires_grad(false)");
}

}  // namespace lockstep::comm
