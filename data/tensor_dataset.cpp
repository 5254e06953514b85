#include "data/tensor_dataset.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "core/digest.h"
#include "core/error.h"

namespace lockstep::data {

TensorDataset::TensorDataset(std::string name, Tensor inputs, Tensor targets)
    : name_(std::move(name)), inputs_(std::move(inputs)), targets_(std::move(targets)) {
  const bool has_labels = targets_.dtype() == Dtype::kI32;
  const int in = inputs_.shape().rank(), out = targets_.shape().rank();
  if (inputs_.dtype() != Dtype::kF32 || (targets_.dtype() != Dtype::kF32 && !has_labels)) {
    throw DtypeError(fmt::format("{} has inputs of {} and targets of {}",
                                 name_,
                                 lockstep::name_of(inputs_.dtype()),
                                 lockstep::name_of(targets_.dtype())));
  }
  if ((in != 2 && in != 4) || out < 1 || out > (has_labels ? 1 : 2) ||
      inputs_.shape()[0] != targets_.shape()[0]) {
    throw ShapeError(
        fmt::format("{} has inputs {} and targets {}, expected (N,F) or (N,C,H,W), "
                    "and {}",
                    name_,
                    to_string(inputs_.shape()),
                    to_string(targets_.shape()),
                    has_labels ? "(N)" : "(N) or (N,K)"));
  }
  if (has_labels && size() > 0) classes_ = 1 + std::ranges::max(targets_.span<int32_t>());
}

ImageShape TensorDataset::image_shape() const {
  const Shape& shape = inputs_.shape();
  if (shape.rank() == 2) return {.channels = shape[1], .height = 1, .width = 1};
  return {.channels = shape[1], .height = shape[2], .width = shape[3]};
}

int32_t TensorDataset::label(int64_t i) const {
  return classes_ > 0 ? targets_.data<int32_t>()[i] : 0;
}

void TensorDataset::read_target(int64_t i, std::span<float> target) const {
  std::copy_n(targets_.data<float>() + i * std::ssize(target), target.size(), target.begin());
}

void TensorDataset::read(int64_t i, std::span<uint8_t> bytes) const {
  std::memcpy(bytes.data(), inputs_.bytes() + i * std::ssize(bytes), bytes.size());
}

std::string TensorDataset::digest() const {
  return to_hex(digest_of({{"inputs", inputs_}, {"targets", targets_}}));
}

}  // namespace lockstep::data
