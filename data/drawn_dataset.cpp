#include "data/drawn_dataset.h"

#include <vector>

#include "core/digest.h"

namespace lockstep::data {
namespace {

int32_t draw_label(PhiloxStream& random) {
  return static_cast<int32_t>(random.below(10));
}

}  // namespace

DrawnDataset::DrawnDataset(const Recipe& recipe, Split split)
    : recipe_(recipe),
      split_(split),
      size_(split == Split::kTrain ? recipe.train_images : recipe.test_images),
      cache_(size_, recipe.shape.numel()) {}

std::string DrawnDataset::name() const {
  return std::string(recipe_.name) + (split_ == Split::kTrain ? "/train" : "/test");
}

PhiloxStream DrawnDataset::stream_of(int64_t i) const {
  return {
      recipe_.seed, recipe_.purpose, split_ == Split::kTrain ? 0U : 1U, static_cast<uint64_t>(i)};
}

int32_t DrawnDataset::label(int64_t i) const {
  PhiloxStream random = stream_of(i);
  return draw_label(random);
}

void DrawnDataset::read(int64_t i, std::span<uint8_t> pixels) const {
  cache_.get(i, pixels, [&](std::span<uint8_t> out) {
    PhiloxStream random = stream_of(i);
    const int32_t label = draw_label(random);
    recipe_.draw(random, label, out);
  });
}

std::string DrawnDataset::digest() const {
  constexpr int64_t kDrawn = 64;
  Digest digest;
  digest.update(name());
  digest.update(static_cast<uint64_t>(size()));
  std::vector<uint8_t> labels(static_cast<size_t>(size()));
  for (int64_t i = 0; i < size(); ++i) {
    labels[static_cast<size_t>(i)] = static_cast<uint8_t>(label(i));
  }
  digest.update(std::as_bytes(std::span(labels)));
  std::vector<uint8_t> pixels(static_cast<size_t>(recipe_.shape.numel()));
  for (int64_t i = 0; i < kDrawn; ++i) {
    read(i, pixels);
    digest.update(std::as_bytes(std::span(pixels)));
  }
  return to_hex(digest.value());
}

}  // namespace lockstep::data
