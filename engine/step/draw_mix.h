// Draws how the images of a micro-step are mixed in pairs. Every rank draws the same numbers.
#pragma once

#include <cstdint>

#include "core/region.h"
#include "data/codecs/image.h"

namespace lockstep {

// Draws how much of its own image each image of a mixed batch keeps: a number of Beta(alpha,
// alpha), in [0, 1], for micro-step `batch` of the run, counted from epoch 0, the same on every
// rank. Uses Marsaglia and Tsang's gamma variates from Philox. Source: numpy's beta, as timm and
// DeepLearningExamples draw it; equal in distribution, not in values. Requires: alpha > 0.
float draw_mix(double alpha, uint64_t seed, int64_t epoch, int64_t batch);

struct CutMix {
  Region box;     // of the other image
  float mix = 1;  // the part of the image that is its own
};

// Returns the part within the image of a box around (x, y) whose area is about 1 - share of the
// image's. Source: torchvision.transforms.v2.CutMix.make_params. Requires: share in [0, 1], (x, y)
// in the image.
CutMix cut_mix(const data::ImageSize& size, double share, int64_t x, int64_t y);
// Returns a cut_mix() with a share drawn from Beta(alpha, alpha) and a uniform place.
CutMix draw_cut_mix(
    double alpha, const data::ImageSize& size, uint64_t seed, int64_t epoch, int64_t batch);

// Draws whether a micro-step gets cutmix or mixup, in a run that has both.
bool draw_whether_cut(uint64_t seed, int64_t epoch, int64_t batch);

}  // namespace lockstep
