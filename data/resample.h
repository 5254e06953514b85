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

// Part of a box, whose edges need not be pixel boundaries.
struct Extent {
  double top = 0;
  double left = 0;
  double height = 0;
  double width = 0;
};

// Resizes `box` of an image, or the part `within` of that box, to `size`, and keeps `window` of the
// result.
struct Resample {
  Region box;
  ImageSize size;
  Region window;
  std::optional<Extent> within{};  // none: the whole box
  Interpolation by = Interpolation::kBilinear;
};

// Converts a resampling of an image to one of the same image after it was shrunk by the factor
// `shrink`, to size `shrunk`.
Resample shrunk_by(int shrink, const Resample& what, const ImageSize& shrunk);

// The region of the image that the result depends on, which is part of the box.
Region needed(const Resample& what);

// Writes what.window's pixels, HWC, mirrored left to right when `flip`.
// Requires: image.region holds needed(what); `to` has 3 bytes per pixel of the window.
// Source: Pillow's Image.resize(size, BILINEAR or BICUBIC, box), bit for bit where that resizes
// columns before rows. Pillow 13 resizes rows first if the height shrinks more than the width: then
// bilinear results differ by at most 1, and bicubic results where a pass is clipped to a byte.
void resample(const Image& image, const Resample& what, bool flip, std::span<uint8_t> to);

}  // namespace lockstep::data
#pragma GCC visibility pop
