#include "trainers/debug/black_box.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "core/transfer.h"
#include "kernels/reduce/nonfinite_rows.h"

namespace lockstep::trainers {

BlackBox::BlackBox(Stream& stream, const nn::Module& model)
    : stream_(stream), parameters_(model.named_parameters()), names_(parameters_) {}

void BlackBox::begin_step(int64_t step) {
  std::optional<NumericsFind> before = first();
  kept_.reset();
  step_ = step;
  events_.clear();
  shards_.clear();
  for (const nn::NamedParameter& parameter : parameters_) {
    for (const Tensor& values : {parameter.var.value(), parameter.var.copy()}) {
      if (!values.defined()) continue;
      watch({.phase = "weights",
             .layer = layer_of_parameter(parameter.name),
             .tensor = parameter.name},
            Rows::kNothing,
            values);
    }
  }
  if (first()) kept_ = std::move(before);
}

void BlackBox::begin_micro_step(const Var& images) {
  shards_.push_back(images.shards());
  places_.clear();
  last_layer_ = "the input";
  watch({.phase = "input", .tensor = "images"}, Rows::kImages, images.value());
}

void BlackBox::on_result(const TapeOp& op, const Tensor& result) {
  const Place place = {.layer = names_.layer_of(op), .after = last_layer_};
  places_[op.number] = place;
  if (!place.layer.empty()) last_layer_ = place.layer;
  watch({.phase = "forward",
         .op = std::string(op.name),
         .layer = place.layer,
         .after = place.after,
         .tensor = "output"},
        result.shape().rank() == 1 ? Rows::kShards : Rows::kImages,  // a loss is leaves
        result);
}

void BlackBox::on_gradient(const TapeOp& op, size_t i, Tensor& gradient) {
  const Place& place = places_.at(op.number);
  const std::string parameter = names_.parameter(op.inputs[i]);
  const std::string input = i == 0 ? "its input" : fmt::format("its input {}", i);
  watch({.phase = "backward",
         .op = std::string(op.name),
         .layer = place.layer,
         .after = place.after,
         .tensor = "gradient of " + (parameter.empty() ? input : parameter)},
        parameter.empty() ? Rows::kImages : Rows::kShards,
        gradient);
}

void BlackBox::watch(NumericsFind what, Rows rows, const Tensor& tensor) {
  what.step = step_;
  what.micro_step = std::max<int64_t>(0, std::ssize(shards_) - 1);
  what.event = std::ssize(events_);
  what.type = fmt::format("{} {}", name_of(tensor.dtype()), to_string(tensor.shape()));
  Tensor counts = Tensor::empty({tensor.shape()[0]}, Dtype::kI32, stream_.device());
  kernels::nonfinite_rows(stream_, tensor, counts);
  events_.push_back({.what = std::move(what), .rows = rows, .counts = std::move(counts)});
}

std::optional<NumericsFind> BlackBox::first() const {
  if (kept_) return kept_;
  for (const Event& event : events_) {
    const Tensor counts = to_cpu(stream_, event.counts);
    const std::span<const int32_t> rows = counts.span<int32_t>();
    if (std::ranges::any_of(rows, [](int32_t count) { return count > 0; })) {
      return find_of(event, counts);
    }
  }
  return std::nullopt;
}

NumericsFind BlackBox::find_of(const Event& event, const Tensor& counts) const {
  NumericsFind find = event.what;
  const std::span<const int32_t> rows = counts.span<int32_t>();
  find.count = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  if (shards_.empty()) return find;  // weights: every shard of the rank has them
  const Shards& shards = shards_[static_cast<size_t>(find.micro_step)];
  for (int64_t k = 0; k < shards.local(); ++k) {
    const size_t images_before = find.images.size();
    for (int64_t image = shards.begin(k); image < shards.begin(k + 1); ++image) {
      const int64_t row = event.rows == Rows::kShards ? k : image;
      if (event.rows == Rows::kNothing || rows[static_cast<size_t>(row)] == 0) continue;
      find.images.push_back(image);
    }
    const bool hit = event.rows == Rows::kShards ? rows[static_cast<size_t>(k)] > 0
                                                 : find.images.size() > images_before;
    if (hit || event.rows == Rows::kNothing) find.shards.push_back(shards.first + k);
  }
  return find;
}

}  // namespace lockstep::trainers
