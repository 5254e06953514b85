// How much of its own image each image of a mixed batch keeps.
#pragma once

#include <cstdint>

namespace lockstep::trainers {

// A number of Beta(alpha, alpha), in [0, 1]: that of micro-step `batch` of the run, counted from
// epoch 0, on every rank. Marsaglia and Tsang's gamma variates from Philox. Source: numpy's beta,
// as timm and DeepLearningExamples draw it, as a set of results. Requires: alpha > 0.
float draw_mix(double alpha, uint64_t seed, int64_t epoch, int64_t batch);

}  // namespace lockstep::trainers
