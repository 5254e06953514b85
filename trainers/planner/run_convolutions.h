// The convolutions that a run asks for, before it asks.
#pragma once

#include <vector>

#include "data/dataset.h"
#include "kernels/conv/convolution_problem.h"
#include "trainers/config/batch_division.h"
#include "trainers/model/models.h"

namespace lockstep::trainers {

// Lists the convolutions of a step in its order, for each size that shards have on any rank; each
// size is followed by the fused forms of its layers, where batch-norm groups are shards and no
// casts lie between. Those of a chunk of the evaluation follow. The smaller last step of an epoch
// and the smaller last chunk are left out: they come once in an epoch.
std::vector<kernels::ConvolutionProblem> run_convolutions(const RunRequest& request,
                                                          const BatchDivision& batch,
                                                          const ModelOptions& network,
                                                          const data::Dataset& test);

}  // namespace lockstep::trainers
