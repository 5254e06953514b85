#include "data/synthetic.h"

#include "core/check.h"
#include "core/digest.h"
#include "core/error.h"
#include "core/philox.h"

namespace lockstep::data {
namespace {

PhiloxStream stream_of(const Synthetic::Options& options, int64_t i) {
  return {options.seed, RandomPurpose::kSynthetic, 0, static_cast<uint64_t>(i)};
}

int32_t draw_label(const Synthetic::Options& options, PhiloxStream& random) {
  return static_cast<int32_t>(random.below(static_cast<uint32_t>(options.classes)));
}

}  // namespace

Synthetic::Synthetic(const Options& options) : options_(options) {
  const ImageShape& shape = options.shape;
  LS_CHECK(options.images >= 1 && options.classes >= 1 && shape.numel() >= 1 &&
               shape.numel() < (int64_t{1} << 26),
           "[synthetic] got {} images of {} x {} x {}, {} classes",
           options.images,
           shape.channels,
           shape.height,
           shape.width,
           options.classes);
}

int32_t Synthetic::label(int64_t i) const {
  PhiloxStream random = stream_of(options_, i);
  return draw_label(options_, random);
}

void Synthetic::read(int64_t i, std::span<uint8_t> pixels) const {
  PhiloxStream random = stream_of(options_, i);
  draw_label(options_, random);
  uint32_t draw = 0;
  for (size_t k = 0; k < pixels.size(); ++k) {
    draw = k % 4 == 0 ? random.next() : draw >> 8;
    pixels[k] = static_cast<uint8_t>(draw);
  }
}

std::string Synthetic::digest() const {
  Digest digest;
  digest.update(name());
  const ImageShape& shape = options_.shape;
  for (const int64_t value : {options_.images,
                              options_.classes,
                              shape.channels,
                              shape.height,
                              shape.width,
                              static_cast<int64_t>(options_.seed)}) {
    digest.update(static_cast<uint64_t>(value));
  }
  return to_hex(digest.value());
}

}  // namespace lockstep::data
