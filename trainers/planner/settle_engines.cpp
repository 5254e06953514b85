#include "trainers/planner/settle_engines.h"

#include <algorithm>
#include <system_error>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/words.h"
#include "kernels/conv/conv2d_fused.h"
#include "trainers/planner/dry_step.h"
#include "trainers/planner/step_convolutions.h"
#include "trainers/report/errors.h"

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

// Lists the shapes that the run's epochs have, each once.
std::vector<data::ImageShape> training_shapes(const RunRequest& request,
                                              const data::ImageShape& largest) {
  const data::CropRamp& ramp = request.photos.train_ramp;
  if (ramp.from == 0) return {largest};
  std::vector<data::ImageShape> shapes;
  for (int64_t epoch = request.start_epoch; epoch < request.epoch_count(); ++epoch) {
    const int64_t side = ramp.side(epoch, largest.height);
    const data::ImageShape shape = {largest.channels, side, side};
    if (shapes.empty() || shapes.back() != shape) shapes.push_back(shape);
  }
  return shapes;
}

// Adds the convolutions of steps whose images have the network's size.
void add_training_convolutions(const RunRequest& request,
                               const BatchDivision& batch,
                               const ModelOptions& network,
                               std::vector<ConvolutionProblem>& problems) {
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

}  // namespace

std::vector<ConvolutionProblem> run_convolutions(const RunRequest& request,
                                                 const BatchDivision& batch,
                                                 const ModelOptions& network,
                                                 const data::Dataset& test) {
  std::vector<ConvolutionProblem> problems;
  if (!request.evaluate) {
    ModelOptions trained = network;
    for (const data::ImageShape& shape : training_shapes(request, network.image)) {
      trained.image = shape;
      add_training_convolutions(request, batch, trained, problems);
    }
  }
  if (request.no_eval) return problems;
  ModelOptions tested = network;
  tested.image = test.image_shape();
  const int64_t chunk = std::min(request.test.batch, test.size());
  for (const PlannedConvolution& call :
       convolutions_of(run_dry_step(tested, chunk, request.precision))) {
    if (call.problem.pass == ConvolutionPass::kForward) add(problems, call.problem, chunk);
  }
  return problems;
}

namespace {

namespace fs = std::filesystem;

// Reads the plans of `file`; returns none where they are stale or absent and may be replaced.
PlanFile known_plans(const fs::path& file,
                     const PlanOrigin& current,
                     bool may_replace,
                     std::string& note) {
  std::error_code error;
  PlanFile fresh{.origin = current, .engines = {}};
  if (may_replace && !fs::exists(file, error)) return fresh;
  PlanFile plans = read_plans(file);
  if (may_replace && plans.origin != current) {
    note = fmt::format("note: {} was of cuDNN {} on {}: its engines are timed again",
                       file.string(),
                       printable(plans.origin.cudnn),
                       printable(plans.origin.card));
    return fresh;
  }
  check_origin(plans, current, file.string());
  return plans;
}

}  // namespace

std::vector<kernels::ConvolutionProblem> fused_layers(
    std::span<const kernels::ConvolutionProblem> problems, const PlannedEngines& engines) {
  const auto pays = [&](const kernels::ConvolutionProblem& problem) {
    const auto found = engines.find(problem.text());
    return found != engines.end() && found->second.is_there();
  };
  std::vector<kernels::ConvolutionProblem> forms;
  for (const kernels::ConvolutionProblem& form : problems) {
    if (!form.is_fused()) continue;
    const bool everywhere = std::ranges::all_of(problems, [&](kernels::ConvolutionProblem other) {
      const bool other_pays = pays(other);
      other.in = {form.in[0], other.in[1], other.in[2], other.in[3]};
      return other_pays || !(other.key() == form.key());
    });
    if (everywhere) forms.push_back(form);
  }
  return forms;
}

std::string SettledEngines::line(const fs::path& file) const {
  const int64_t by_rule = convolutions - std::ssize(engines);
  std::string text = fmt::format(
      "cuDNN's engines: {} of {} convolutions by {}", engines.size(), convolutions, file.string());
  if (timed > 0) text += fmt::format(", {} of them timed now", timed);
  if (by_rule > 0) text += fmt::format(", {} by rule", by_rule);
  if (fused > 0) text += fmt::format(", {} fused with batch norms", fused);
  return text;
}

SettledEngines settle_engines(Communicator& ranks,
                              const fs::path& file,
                              const PlanOrigin& current,
                              std::span<const kernels::ConvolutionProblem> problems,
                              const TuneEngine& tune) {
  SettledEngines settled{.convolutions = std::ssize(problems)};
  const bool chooses = ranks.rank() == 0;
  run_or_end_all_ranks(ranks, [&] {
    if (chooses) settled.plans = known_plans(file, current, static_cast<bool>(tune), settled.note);
  });
  PlannedEngines& known = settled.plans.engines;
  PlanFile of_run{.origin = current, .engines = {}};
  for (const kernels::ConvolutionProblem& problem : problems) {
    run_or_end_all_ranks(ranks, [&] {
      if (!chooses) return;
      const std::string name = problem.text();
      if (tune && !known.contains(name)) {
        known[name] = tune(problem, known);
        ++settled.timed;
      }
      if (known.contains(name)) of_run.engines[name] = known[name];
    });
  }
  settled.engines =
      parse_plans(comm::broadcast_text(ranks, to_json(of_run)), "rank 0's plans").engines;
  settled.fused = std::ranges::count_if(fused_layers(problems, settled.engines),
                                        &kernels::ConvolutionProblem::gives_sums);
  return settled;
}

}  // namespace lockstep::trainers
