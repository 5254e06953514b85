#include "trainers/planner/run_convolutions.h"

#include <algorithm>

#include "kernels/conv/conv2d_fused.h"
#include "trainers/planner/convolution_plans.h"
#include "trainers/planner/dry_step.h"

namespace lockstep::trainers {
namespace {

using kernels::ConvolutionPass;
using kernels::ConvolutionProblem;

std::vector<int64_t> shard_sizes(const BatchDivision& batch) {
  const int64_t images = batch.images / (batch.micro_steps * batch.bn_groups);
  const int64_t shards = batch.shards / batch.bn_groups;
  std::vector<int64_t> sizes;
  if (images >= shards) sizes.push_back(images / shards);
  if (images % shards != 0) sizes.push_back(images / shards + 1);
  return sizes;
}

void add(std::vector<ConvolutionProblem>& problems, ConvolutionProblem problem, int64_t images) {
  problem.in = {images, problem.in[1], problem.in[2], problem.in[3]};
  const auto same = [&](const ConvolutionProblem& known) { return known.key() == problem.key(); };
  if (std::ranges::none_of(problems, same)) problems.push_back(problem);
}

}  // namespace

std::vector<ConvolutionProblem> run_convolutions(const RunRequest& request,
                                                 const BatchDivision& batch,
                                                 const ModelOptions& network,
                                                 const data::Dataset& test) {
  std::vector<ConvolutionProblem> problems;
  if (!request.evaluate) {
    const std::vector<int64_t> sizes = shard_sizes(batch);
    const DryStep step = run_dry_step(network, sizes.back(), request.precision);
    for (const int64_t images : sizes) {
      const std::vector<PlannedConvolution> calls = convolutions_of(step);
      for (const PlannedConvolution& call : calls) add(problems, call.problem, images);
      if (batch.shards != batch.bn_groups || request.precision.network().autocast) continue;
      for (const PlannedConvolution& call : calls) {
        for (const ConvolutionProblem& form : kernels::fused_forms(call.problem)) {
          add(problems, form, images);
        }
      }
    }
  }
  ModelOptions tested = network;
  tested.image = test.image_shape();
  const int64_t chunk = std::min(request.val_batch_size, test.size());
  for (const PlannedConvolution& call :
       convolutions_of(run_dry_step(tested, chunk, request.precision))) {
    if (call.problem.pass == ConvolutionPass::kForward) add(problems, call.problem, chunk);
  }
  return problems;
}

}  // namespace lockstep::trainers
