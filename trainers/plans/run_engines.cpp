#include "trainers/plans/run_engines.h"

#include <cerrno>
#include <system_error>

#include <fmt/core.h>
#include <unistd.h>

#include "comm/handshake.h"
#include "core/atomic_file.h"
#include "core/cuda/device.h"
#include "kernels/conv2d_cudnn.h"
#include "kernels/linear_cublaslt.h"
#include "trainers/loop/agree.h"
#include "trainers/output/run_directory.h"
#include "trainers/plans/run_convolutions.h"

namespace lockstep::trainers {
namespace {

namespace cublaslt = kernels::cublaslt;
namespace cudnn = kernels::cudnn;

bool asks_for_engines(const RunConfig& config) {
  return config.autotune || !config.plan_file.empty();
}

PlanOrigin origin_here(const RunConfig& config) {
  const cuda::DeviceProperties& gpu = cuda::device_properties();
  return {.cudnn = config.cuda_libraries.at("cudnn"),
          .card = fmt::format("{} (sm_{}{})", gpu.name, gpu.major, gpu.minor)};
}

// As they reach cuDNN.
std::vector<kernels::ConvolutionProblem> problems_of(const RunConfig& config,
                                                     const ModelOptions& network,
                                                     const data::Dataset& test) {
  std::vector<kernels::ConvolutionProblem> problems;
  for (const kernels::ConvolutionProblem& problem : run_convolutions(config, network, test)) {
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

std::map<std::string, std::string> cuda_libraries() {
  std::map<std::string, std::string> versions;
  if (cudnn::is_there()) versions["cudnn"] = cudnn::version();
  if (cublaslt::is_there()) versions["cublaslt"] = cublaslt::version();
  return versions;
}

}  // namespace

void meet_cuda_libraries(RunConfig& config, Communicator& ranks) {
  if (asks_for_engines(config) && (config.device != Device::kCuda || !cudnn::is_there())) {
    throw UsageError(fmt::format("--{} has no engines to choose from",
                                 config.autotune ? "autotune" : "plan-file"),
                     "they are cuDNN's, and this program has none: convolutions are kernels of "
                     "Lockstep's own",
                     "leave it out, or a build beside cuDNN 9");
  }
  if (config.device != Device::kCuda) return;
  on_all_ranks(ranks, [&] { config.cuda_libraries = cuda_libraries(); });
  comm::HandshakeField here = {comm::HandshakeField::Kind::kEnvironment, "CUDA libraries", ""};
  for (const auto& [name, version] : config.cuda_libraries) {
    here.value += fmt::format("{}{} {}", here.value.empty() ? "" : ", ", name, version);
  }
  comm::handshake(ranks, std::span(&here, 1));
}

std::filesystem::path plan_file_of(const RunConfig& config) {
  if (!config.plan_file.empty()) return config.plan_file;
  return std::filesystem::path(config.output_dir) / kPlansFile;
}

SettledEngines settle_run_engines(RunConfig& config,
                                  const ModelOptions& network,
                                  const data::Dataset& test,
                                  Stream& stream,
                                  Communicator& ranks,
                                  Console& console) {
  if (!asks_for_engines(config)) return {};
  const auto problems = problems_of(config, network, test);
  if (config.autotune) {
    on_all_ranks(ranks, [&] {
      if (ranks.rank() == 0) check_writable(config.plan_file);
    });
    console.info(fmt::format("choosing cuDNN's engines for {} convolutions", problems.size()));
  }
  SettledEngines settled = settle_engines(ranks,
                                          plan_file_of(config),
                                          origin_here(config),
                                          problems,
                                          config.autotune ? tune_on(stream) : TuneEngine());
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
  config.plan_choices = digest_of(settled.engines);
  return settled;
}

void keep_plans(const RunConfig& config, const SettledEngines& settled) {
  if (!asks_for_engines(config)) return;
  const std::string text = to_json(settled.plans);
  write_file_atomically(std::filesystem::path(config.output_dir) / kPlansFile, text);
  if (!config.plan_file.empty() && settled.timed > 0) write_file_atomically(config.plan_file, text);
}

}  // namespace lockstep::trainers
