#include "trainers/planner/run_engines.h"

#include <fmt/core.h>

#include "comm/handshake.h"
#include "core/atomic_file.h"
#include "trainers/report/errors.h"
#include "trainers/report/run_directory.h"

#if defined(LOCKSTEP_CUDNN)
#include <cerrno>
#include <string_view>
#include <system_error>

#include <unistd.h>

#include "core/cuda/device.h"
#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/conv/cudnn_autotune.h"
#include "trainers/planner/settle_engines.h"
#endif
#if defined(LOCKSTEP_CUDA)
#include "kernels/linear/linear_cublaslt.h"
#include "kernels/support/cublaslt/api.h"
#endif

namespace lockstep::trainers {
namespace {

bool asks_for_engines(const RunRequest& request) {
  return request.autotune || !request.plan_file.empty();
}

#if defined(LOCKSTEP_CUDNN)
namespace cudnn = kernels::cudnn;

bool has_cudnn() {
  return cuda::has_library(cudnn::kSoname);
}

PlanOrigin plan_origin(const LibraryVersions& libraries) {
  const cuda::DeviceProperties& gpu = cuda::device_properties();
  return {.cudnn = libraries.at("cudnn"),
          .card = fmt::format("{} (sm_{}{})", gpu.name, gpu.major, gpu.minor)};
}

// As they reach cuDNN.
std::vector<kernels::ConvolutionProblem> problems_of(const EngineWishes& wishes) {
  std::vector<kernels::ConvolutionProblem> problems;
  for (const kernels::ConvolutionProblem& problem :
       run_convolutions(wishes.request, wishes.batch, wishes.network, wishes.test)) {
    if (cudnn::fits(problem)) problems.push_back(problem.padded());
  }
  return problems;
}

// Before minutes are spent on what could not be kept.
void check_writable(const std::string& plan_file) {
  const std::filesystem::path folder = std::filesystem::path(plan_file).parent_path();
  if (plan_file.empty() || access(folder.empty() ? "." : folder.c_str(), W_OK) == 0) return;
  throw EnvironmentError(fmt::format("--plan-file {} cannot be written", plan_file),
                         std::generic_category().message(errno),
                         "a file in a folder that this user may write to");
}

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
        problem.is_fused() ? cudnn::fused_engine(target, problem, cudnn::kMostWorkspace, of, timer)
                           : cudnn::fastest_engine(target, problem, cudnn::kMostWorkspace, timer);
    return PlannedEngine{.engine = found.choice,
                         .microseconds = found.microseconds,
                         .rule_microseconds = found.rule_microseconds,
                         .workspace_bytes = static_cast<int64_t>(found.workspace_bytes)};
  };
}
static_assert(std::string_view(PlannedEngine::kNone) == cudnn::kNoEngine);
#else
bool has_cudnn() {
  return false;
}
#endif

LibraryVersions cuda_libraries() {
  LibraryVersions versions;
#if defined(LOCKSTEP_CUDNN)
  if (has_cudnn()) versions["cudnn"] = cudnn::api().version();
#endif
#if defined(LOCKSTEP_CUDA)
  namespace cublaslt = kernels::cublaslt;
  if (cublaslt::is_there()) versions["cublaslt"] = cublaslt::api().version();
#endif
  return versions;
}

}  // namespace

LibraryVersions agreed_cuda_libraries(const RunRequest& request, Communicator& ranks) {
  if (asks_for_engines(request) && (request.device != Device::kCuda || !has_cudnn())) {
    throw UsageError(fmt::format("--{} has no engines to choose from",
                                 request.autotune ? "autotune" : "plan-file"),
                     "they are cuDNN's, and this program has none: convolutions are kernels of "
                     "Lockstep's own",
                     "leave it out, or a build beside cuDNN 9");
  }
  if (request.device != Device::kCuda) return {};
  LibraryVersions libraries;
  on_all_ranks(ranks, [&] { libraries = cuda_libraries(); });
  comm::HandshakeField here = {comm::HandshakeField::Kind::kEnvironment, "CUDA libraries", ""};
  for (const auto& [name, version] : libraries) {
    here.value += fmt::format("{}{} {}", here.value.empty() ? "" : ", ", name, version);
  }
  comm::handshake(ranks, std::span(&here, 1));
  return libraries;
}

std::filesystem::path plan_file_of(const RunRequest& request, const std::string& output_dir) {
  if (!request.plan_file.empty()) return request.plan_file;
  return std::filesystem::path(output_dir) / kPlansFile;
}

#if defined(LOCKSTEP_CUDNN)
SettledEngines settle_run_engines(const EngineWishes& wishes,
                                  Stream& stream,
                                  Communicator& ranks,
                                  Console& console) {
  const RunRequest& request = wishes.request;
  if (!asks_for_engines(request)) return {};
  const auto problems = problems_of(wishes);
  if (request.autotune) {
    on_all_ranks(ranks, [&] {
      if (ranks.rank() == 0) check_writable(request.plan_file);
    });
    console.info(fmt::format("choosing cuDNN's engines for {} convolutions", problems.size()));
  }
  SettledEngines settled = settle_engines(ranks,
                                          wishes.plan_file,
                                          plan_origin(wishes.libraries),
                                          problems,
                                          request.autotune ? make_tuner(stream) : TuneEngine());
  on_all_ranks(ranks, [&] {
    for (const kernels::ConvolutionProblem& problem : problems) {
      const auto found = settled.engines.find(problem.text());
      if (found == settled.engines.end() || !found->second.is_there()) continue;
      cudnn::keep_plan(stream, problem, found->second.engine);
    }
    for (const kernels::ConvolutionProblem& form : fused_layers(problems, settled.engines)) {
      kernels::choose_form(stream, form);
    }
  });
  return settled;
}
#else
SettledEngines settle_run_engines(const EngineWishes& /*wishes*/,
                                  Stream& /*stream*/,
                                  Communicator& /*ranks*/,
                                  Console& /*console*/) {
  return {};
}
#endif

void keep_plans(const ResolvedRun& run, const SettledEngines& settled) {
  const RunRequest& request = run.request;
  if (!asks_for_engines(request)) return;
  const std::string text = to_json(settled.plans);
  write_file_atomically(std::filesystem::path(run.output_dir) / kPlansFile, text);
  if (!request.plan_file.empty() && settled.timed > 0) {
    write_file_atomically(request.plan_file, text);
  }
}

}  // namespace lockstep::trainers
