#include "engine/observe/black_box.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "core/transfer.h"
#include "kernels/reduce/nonfinite_rows.h"

namespace lockstep {

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

namespace {

constexpr int64_t kSkips = 10;
constexpr size_t kScales = 100;

}  // namespace

NumericsWatch::NumericsWatch(const Options& options, Stream& stream, const nn::Module& model)
    : options_(options), stream_(stream), model_(model) {}

void NumericsWatch::begin_step(int64_t step, double scale, int64_t consecutive_skips) {
  step_ = step;
  scale_ = scale;
  if (consecutive_skips == 0) reported_ = false;
  const bool due = consecutive_skips >= kSkips - 1 && !reported_;
  if (options_.when == When::kTenthSkip && !due) {
    box_.reset();
    return;
  }
  if (!box_) box_.emplace(stream_, model_);
  box_->begin_step(step);
}

void NumericsWatch::begin_micro_step(const Var& images) {
  if (box_) box_->begin_micro_step(images);
}

bool NumericsWatch::end_step(double scale, int64_t consecutive_skips) {
  const bool skipped = consecutive_skips > 0;
  if (skipped || scale != scale_) {
    scales_.push_back({.step = step_, .scale = scale, .skipped = skipped});
    if (scales_.size() > kScales) scales_.erase(scales_.begin());
  }
  const bool due = box_ && consecutive_skips >= kSkips && !reported_;
  reported_ = reported_ || due;
  return due;
}

NumericsReport NumericsWatch::report(Communicator& ranks,
                                     Trouble trouble,
                                     std::string what,
                                     int64_t step) const {
  NumericsReport report{.trouble = trouble,
                        .what = std::move(what),
                        .step = step,
                        .scales = scales_,
                        .shards = options_.plan.shards,
                        .ranks = options_.run_ranks};
  if (box_) report.first = earliest(ranks, find(*box_));
  return report;
}

// Replaces rows of the batch by the images' numbers in the training set.
std::optional<NumericsFind> NumericsWatch::find(const BlackBox& box) const {
  std::optional<NumericsFind> find = box.first();
  if (!find || find->images.empty()) return find;
  const data::MicroBatch batch =
      data::training_sequence(options_.plan, find->step - 1, find->step).at(find->micro_step);
  for (int64_t& image : find->images) {
    image = batch.images[static_cast<size_t>(image)] % options_.plan.dataset_size;
  }
  return find;
}

}  // namespace lockstep
