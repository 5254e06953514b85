#include "trainers/debug/numerics_watch.h"

#include <algorithm>
#include <utility>

namespace lockstep::trainers {
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

// With the images' numbers in the training set.
std::optional<NumericsFind> NumericsWatch::find(const BlackBox& box) const {
  std::optional<NumericsFind> find = box.first();
  if (!find || find->images.empty()) return find;
  const data::MicroBatch batch =
      data::training_sequence(options_.plan, find->step - 1, find->step).at(find->micro_step);
  for (int64_t& image : find->images) image = batch.images[static_cast<size_t>(image)];
  return find;
}

}  // namespace lockstep::trainers
