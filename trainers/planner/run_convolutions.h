// The convolutions that a run asks for, before it asks.
#pragma once

#include <vector>

#include "data/dataset.h"
#include "kernels/convolution_problem.h"
#include "trainers/config/batch_division.h"
#include "trainers/model/models.h"

namespace lockstep::trainers {

// Of a step, in its order, for each size that its shards have, on whichever rank, each size's
// followed by the fused forms of its layers, where batch-norm groups are shards and no casts lie
// between; then of a chunk of the evaluation. Not of the last step of an epoch, nor of the last
// chunk, where these are smaller: they come once in an epoch.
std::vector<kernels::ConvolutionProblem> run_convolutions(const RunRequest& request,
                                                          const BatchDivision& batch,
                                                          const ModelOptions& network,
                                                          const data::Dataset& test);

}  // namespace lockstep::trainers
