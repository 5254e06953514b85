// How the images of a micro-step are mixed in pairs: numbers that every rank draws alike.
#pragma once

#include <cstdint>

#include "core/region.h"
#include "data/codecs/image.h"

namespace lockstep::trainers {

// How much of its own image each image of a mixed batch keeps: a number of Beta(alpha, alpha), in
// [0, 1], that of micro-step `batch` of the run, counted from epoch 0, on every rank. Marsaglia and
// Tsang's gamma variates from Philox. Source: numpy's beta, as timm and DeepLearningExamples draw
// it, as a set of results. Requires: alpha > 0.
float draw_mix(double alpha, uint64_t seed, int64_t epoch, int64_t batch);

struct CutMix {
  Region box;     // of the other image
  float mix = 1;  // the part of the image that is its own
};

// The box around (x, y) whose area is about 1 - share of the image's, as far as it lies in the
// image. Source: torchvision.transforms.v2.CutMix.make_params. Requires: share in [0, 1], (x, y) in
// the image.
CutMix cut_mix(const data::ImageSize& size, double share, int64_t x, int64_t y);
// With a share of Beta(alpha, alpha), likewise; all places are equally likely.
CutMix draw_cut_mix(
    double alpha, const data::ImageSize& size, uint64_t seed, int64_t epoch, int64_t batch);

// Which of the two a micro-step gets where a run has both.
bool draw_whether_cut(uint64_t seed, int64_t epoch, int64_t batch);

}  // namespace lockstep::trainers
