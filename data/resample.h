// Resizing as Pillow does it: each result is a weighted mean of all pixels under a triangle as wide
// as the scale, so that shrinking does not alias. Integer arithmetic: every machine gives the same
// bytes.
#pragma once

#include <cstdint>
#include <span>

#include "data/codecs/image.h"

namespace lockstep::data {

// `box` of an image is resized to `size`; of that, `window` is kept.
struct Resample {
  Region box;
  ImageSize size;
  Region window;
};

// The pixels of the image that the result depends on: part of the box.
Region needed(const Resample& what);

// Writes what.window's pixels, HWC, mirrored left to right when `flip`.
// Requires: image.region is needed(what); `to` has 3 bytes a pixel of the window.
// Source: Pillow's Image.resize(size, BILINEAR, box), bit for bit where that resizes columns before
// rows, elsewhere within 1.
void resample(const Image& image, const Resample& what, bool flip, std::span<uint8_t> to);

}  // namespace lockstep::data
