// Resizing as Pillow does it: each result is a weighted mean of all pixels under a triangle, or a
// bicubic curve, as wide as the scale, so that shrinking does not alias. Integer arithmetic: every
// machine gives the same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "data/codecs/image.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// Part of a box that need not end where pixels do.
struct Extent {
  double top = 0;
  double left = 0;
  double height = 0;
  double width = 0;
};

// `box` of an image, or `within` it, is resized to `size`; of that, `window` is kept.
struct Resample {
  Region box;
  ImageSize size;
  Region window;
  std::optional<Extent> within{};  // none: all of the box
  Interpolation by = Interpolation::kBilinear;
};

// Maps a resampling to an image that was shrunk by a whole number, to `shrunk` pixels.
Resample shrunk_by(int shrink, const Resample& what, const ImageSize& shrunk);

// The pixels of the image that the result depends on: part of the box.
Region needed(const Resample& what);

// Writes what.window's pixels, HWC, mirrored left to right when `flip`.
// Requires: image.region holds needed(what); `to` has 3 bytes a pixel of the window.
// Source: Pillow's Image.resize(size, BILINEAR or BICUBIC, box), bit for bit where that resizes
// columns before rows. Pillow 13 takes rows first where the height shrinks more than the width:
// then bilinear is within 1, and bicubic differs where a pass is cut to a byte.
void resample(const Image& image, const Resample& what, bool flip, std::span<uint8_t> to);

}  // namespace lockstep::data
#pragma GCC visibility pop
