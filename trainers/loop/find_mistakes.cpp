#include "trainers/loop/find_mistakes.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "comm/gather.h"
#include "core/round_up.h"
#include "data/codecs/encode_png.h"
#include "data/codecs/unreadable_image.h"

namespace lockstep::trainers {
namespace {

template <class T>
int32_t largest(const T* logits, int64_t classes) {
  int32_t best = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const auto logit = static_cast<float>(logits[c]);
    if (std::isnan(logit)) return -1;
    if (logit > static_cast<float>(logits[best])) best = static_cast<int32_t>(c);
  }
  return best;
}

// -1 where a logit is NaN.
int32_t predicted_class(const Tensor& logits, int64_t row, int64_t classes) {
  const int64_t begin = row * classes;
  switch (logits.dtype()) {
    case Dtype::kF16:
      return largest(logits.data<Half>() + begin, classes);
    case Dtype::kBF16:
      return largest(logits.data<BFloat16>() + begin, classes);
    default:
      return largest(logits.data<float>() + begin, classes);
  }
}

// A total order, so that the result does not depend on the number of ranks.
bool is_worse(const Mistake& a, const Mistake& b) {
  return std::tuple(-a.loss, a.index) < std::tuple(-b.loss, b.index);
}

void keep_worst(std::vector<Mistake>& mistakes) {
  std::ranges::sort(mistakes, is_worse);
  if (mistakes.size() > Mistakes::kWorst) mistakes.resize(Mistakes::kWorst);
}

// A PNG of every k-th pixel of every k-th row.
std::string reduced_png(const data::ImageShape& shape, const std::vector<uint8_t>& pixels) {
  constexpr int64_t kSide = 96;
  const int64_t step = ceil_div(std::max(shape.height, shape.width), kSide);
  std::string reduced;
  for (int64_t y = 0; y < shape.height; y += step) {
    for (int64_t x = 0; x < shape.width; x += step) {
      const int64_t from = (y * shape.width + x) * shape.channels;
      for (int64_t c = 0; c < shape.channels; ++c) {
        reduced += static_cast<char>(pixels[static_cast<size_t>(from + c)]);
      }
    }
  }
  return data::encode_png(
      {ceil_div(shape.height, step), ceil_div(shape.width, step)}, shape.channels, reduced);
}

}  // namespace

MistakeFinder::MistakeFinder(int64_t classes) : classes_(classes) {
  if (classes <= kMaxClasses) confusion_.resize(static_cast<size_t>(classes * classes));
}

void MistakeFinder::add(const EvaluatedImages& images) {
  const int64_t classes = images.logits.shape()[1];
  for (int64_t row = 0; row < images.labels.shape()[0]; ++row) {
    const Mistake seen{.index = images.indices.data<int64_t>()[row],
                       .label = images.labels.data<int32_t>()[row],
                       .predicted = predicted_class(images.logits, row, classes),
                       .loss = images.losses.data<float>()[row]};
    const bool counts = seen.predicted >= 0 && seen.predicted < classes_ && seen.label < classes_;
    if (counts && !confusion_.empty()) {
      ++confusion_[static_cast<size_t>(seen.label * classes_ + seen.predicted)];
    }
    if (!counts || seen.predicted == seen.label || !std::isfinite(seen.loss)) continue;
    if (worst_.size() == Mistakes::kWorst && !is_worse(seen, worst_.back())) continue;
    worst_.push_back(seen);
    keep_worst(worst_);
  }
}

Mistakes MistakeFinder::over_ranks(Communicator& ranks) const {
  Mistakes all{.classes = classes_, .confusion = confusion_};
  if (!all.confusion.empty()) ranks.all_reduce_sum(std::span<int64_t>(all.confusion));
  std::vector<Mistake> mine = worst_;
  mine.resize(Mistakes::kWorst);
  all.worst = comm::gather_values(ranks, std::span<const Mistake>(mine));
  std::erase_if(all.worst, [](const Mistake& mistake) { return mistake.index < 0; });
  keep_worst(all.worst);
  return all;
}

void add_pictures(const data::Dataset& images, Mistakes& mistakes) {
  const data::ImageShape shape = images.image_shape();
  std::vector<uint8_t> pixels(static_cast<size_t>(shape.numel()));
  for (const Mistake& mistake : mistakes.worst) {
    std::string png;
    try {
      images.read(mistake.index, pixels);
      if (shape.channels == 1 || shape.channels == 3) png = reduced_png(shape, pixels);
    } catch (const data::UnreadableImage&) {
      png.clear();  // it was read before; a report goes without
    }
    mistakes.pictures.push_back(base64(png));
  }
}

}  // namespace lockstep::trainers
