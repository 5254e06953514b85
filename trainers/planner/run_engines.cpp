#include "trainers/planner/run_engines.h"

#include <algorithm>
#include <cerrno>

#include <fmt/core.h>
#include <unistd.h>

#include "comm/handshake.h"
#include "core/atomic_file.h"
#include "core/cuda/device.h"
#include "core/errno_text.h"
#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/linear/linear_cublaslt.h"
#include "trainers/config/run_files.h"
#include "trainers/planner/settle_engines.h"
#include "trainers/report/errors.h"
#include "trainers/report/run_directory.h"

namespace lockstep::trainers {
namespace {

namespace cublaslt = kernels::cublaslt;
namespace cudnn = kernels::cudnn;
using kernels::ConvolutionProblem;

bool asks_for_engines(const RunRequest& request) {
  return request.autotune || !request.plan_file.empty();
}

PlanOrigin plan_origin(const LibraryVersions& libraries) {
  return {.cudnn = libraries.at("cudnn"), .card = cuda::device_properties().text()};
}

// As they reach cuDNN.
std::vector<ConvolutionProblem> padded(std::span<const ConvolutionProblem> calls) {
  std::vector<ConvolutionProblem> problems;
  for (const ConvolutionProblem& call : calls) {
    if (cudnn::fits(call)) problems.push_back(call.padded());
  }
  return problems;
}

// Fails before minutes are spent on plans that could not be kept.
void check_writable(const std::string& plan_file) {
  const std::filesystem::path folder = std::filesystem::path(plan_file).parent_path();
  if (plan_file.empty() || access(folder.empty() ? "." : folder.c_str(), W_OK) == 0) return;
  throw EnvironmentError(fmt::format("--plan-file {} cannot be written", plan_file),
                         errno_text(),
                         "a file in a folder that this user may write to");
}

LibraryVersions cuda_libraries() {
  LibraryVersions versions;
  if (cudnn::is_available()) versions["cudnn"] = cudnn::version();
  if (cublaslt::is_available()) versions["cublaslt"] = cublaslt::version();
  return versions;
}

// Engines by --autotune and --plan-file.
SettledEngines requested_engines(const EngineInputs& inputs,
                                 std::span<const ConvolutionProblem> problems,
                                 Stream& stream,
                                 Communicator& ranks,
                                 Console& console) {
  const RunRequest& request = inputs.request;
  if (request.autotune) {
    run_or_end_all_ranks(ranks, [&] {
      if (ranks.rank() == 0) check_writable(request.plan_file);
    });
    console.info(fmt::format("choosing cuDNN's engines for {} convolutions", problems.size()));
  }
  SettledEngines settled = settle_engines(ranks,
                                          inputs.plan_file,
                                          plan_origin(inputs.libraries),
                                          problems,
                                          request.autotune ? make_tuner(stream) : TuneEngine());
  run_or_end_all_ranks(ranks, [&] {
    for (const ConvolutionProblem& problem : problems) {
      const auto found = settled.engines.find(problem.text());
      if (found == settled.engines.end() || !found->second.is_there()) continue;
      cudnn::keep_plan(stream, problem, found->second.engine);
    }
    for (const ConvolutionProblem& form : fused_layers(problems, settled.engines)) {
      kernels::choose_form(stream, form);
    }
  });
  return settled;
}

}  // namespace

LibraryVersions agreed_cuda_libraries(const RunRequest& request, Communicator& ranks) {
  if (asks_for_engines(request) && (request.device != Device::kCuda || !cudnn::is_available())) {
    throw UsageError(fmt::format("--{} has no engines to choose from",
                                 request.autotune ? "autotune" : "plan-file"),
                     "they are cuDNN's, and this program has none: convolutions are kernels of "
                     "Lockstep's own",
                     "leave it out, or a build beside cuDNN 9");
  }
  if (request.device != Device::kCuda) return {};
  LibraryVersions libraries;
  run_or_end_all_ranks(ranks, [&] { libraries = cuda_libraries(); });
  comm::HandshakeField versions = {comm::HandshakeField::Kind::kEnvironment, "CUDA libraries", ""};
  for (const auto& [name, version] : libraries) {
    versions.value += fmt::format("{}{} {}", versions.value.empty() ? "" : ", ", name, version);
  }
  comm::handshake(ranks, std::span(&versions, 1));
  return libraries;
}

std::filesystem::path plan_file_of(const RunRequest& request, const std::string& output_dir) {
  if (!request.plan_file.empty()) return request.plan_file;
  return std::filesystem::path(output_dir) / kPlansFile;
}

int64_t largest_workspace(std::span<const ConvolutionProblem> problems, Stream& stream) {
  size_t largest = 0;
  for (const ConvolutionProblem& problem : problems) {
    if (!cudnn::takes(problem)) continue;
    if (problem.is_fused() && !kernels::is_chosen(stream, problem)) continue;
    largest = std::max(largest, cudnn::workspace_bytes(stream, problem));
  }
  return static_cast<int64_t>(largest);
}

SettledEngines settle_run_engines(const EngineInputs& inputs,
                                  Stream& stream,
                                  Communicator& ranks,
                                  Console& console) {
  const RunRequest& request = inputs.request;
  if (request.device != Device::kCuda || !cudnn::is_available()) return {};
  const auto calls = run_convolutions(request, inputs.batch, inputs.network, inputs.test);
  SettledEngines settled;
  if (asks_for_engines(request)) {
    settled = requested_engines(inputs, padded(calls), stream, ranks, console);
  }
  run_or_end_all_ranks(ranks, [&] { settled.workspace_bytes = largest_workspace(calls, stream); });
  return settled;
}

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
