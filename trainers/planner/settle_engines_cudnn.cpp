#include <string_view>

#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/conv/cudnn_autotune.h"
#include "trainers/planner/settle_engines.h"

namespace lockstep::trainers {

namespace cudnn = kernels::cudnn;
static_assert(std::string_view(PlannedEngine::kNone) == cudnn::kNoEngine);

TuneEngine make_tuner(Stream& stream) {
  return [&stream](const kernels::ConvolutionProblem& problem, const PlannedEngines& known) {
    const cudnn::Target& target = cudnn::target_of(stream);
    cudnn::StreamTimer timer(stream);
    const auto of = [&](const kernels::ConvolutionProblem& other) -> cudnn::TimedEngine {
      const PlannedEngine& engine = known.at(other.text());
      return {.choice = engine.engine,
              .microseconds = engine.microseconds,
              .rule_microseconds = engine.rule_microseconds};
    };
    const cudnn::TimedEngine found =
        problem.is_fused() ? cudnn::fused_engine(target, problem, cudnn::kMaxWorkspace, of, timer)
                           : cudnn::fastest_engine(target, problem, cudnn::kMaxWorkspace, timer);
    return PlannedEngine{.engine = found.choice,
                         .microseconds = found.microseconds,
                         .rule_microseconds = found.rule_microseconds,
                         .workspace_bytes = static_cast<int64_t>(found.workspace_bytes)};
  };
}

}  // namespace lockstep::trainers
