#include "trainers/machine/cuda_findings.h"

#include <string_view>

#include <fmt/core.h>

namespace lockstep::trainers {
namespace {

using State = Finding::State;
using Kind = cuda::Obstacle::Kind;

// "what: why" of an error.
std::string text_of(const Error& error) {
  return error.why().empty() ? error.what() : fmt::format("{}: {}", error.what(), error.why());
}

std::string install_text(std::string_view package) {
  return fmt::format("scripts/setup.sh cuda (or pip install {}), then scripts/build_training.sh",
                     package);
}

// "13" of "13.0"
std::string major_of(const std::string& toolkit) {
  return toolkit.substr(0, toolkit.find('.'));
}

bool hides_all_on_purpose(const CudaFacts& facts) {
  return facts.mask && (facts.mask->empty() || *facts.mask == "-1");
}

Finding gpu_finding(const cuda::DeviceProperties& gpu) {
  Finding finding = {.subject = fmt::format("GPU {}", gpu.index),
                     .text = fmt::format("{}, {:.1f} GiB, compute capability {}.{}",
                                         gpu.name,
                                         static_cast<double>(gpu.total_bytes) / (1 << 30),
                                         gpu.major,
                                         gpu.minor)};
  if (gpu.major >= cuda::kOldestMajor) return finding;
  finding.state = State::kBroken;
  finding.text += fmt::format(": too old, the kernels need {}.0", cuda::kOldestMajor);
  finding.remedy = "CUDA_VISIBLE_DEVICES to name the others, or --device cpu";
  return finding;
}

// `without`: what follows from its absence.
Finding library_finding(const std::string& subject,
                        const LibraryFacts& facts,
                        std::string_view without,
                        const std::string& package) {
  if (facts.problem.empty()) return {.subject = subject, .text = facts.version};
  return {.subject = subject,
          .state = facts.is_expected ? State::kBroken : State::kMissing,
          .text = facts.is_expected ? facts.problem : fmt::format("{}: {}", without, facts.problem),
          .remedy = install_text(package)};
}

Finding cudnn_finding(const LibraryFacts& cudnn, const std::string& toolkit) {
  return library_finding("cuDNN",
                         cudnn,
                         "convolutions run on Lockstep's own kernels, which are slow",
                         "nvidia-cudnn-cu" + major_of(toolkit));
}

Finding cublaslt_finding(const LibraryFacts& cublaslt, const std::string& toolkit) {
  return library_finding("cuBLASLt",
                         cublaslt,
                         "matrix products run on Lockstep's own kernels",
                         toolkit.starts_with("12") ? "nvidia-cublas-cu12" : "nvidia-cublas");
}

Finding nccl_finding(const LibraryFacts& nccl, const std::string& toolkit) {
  return library_finding("NCCL",
                         nccl,
                         "gradients between GPUs travel over CUDA IPC or through the host",
                         "nvidia-nccl-cu" + major_of(toolkit));
}

}  // namespace

std::optional<Finding> unused_gpu(const CudaFacts& facts) {
  if (!facts.obstacle) return std::nullopt;
  const cuda::Obstacle& obstacle = *facts.obstacle;
  Finding finding = {.subject = "GPU",
                     .state = State::kBroken,
                     .text = text_of(obstacle.error),
                     .remedy = obstacle.error.hint()};
  const bool is_seen = facts.has_traces && !hides_all_on_purpose(facts);
  switch (obstacle.kind) {
    case Kind::kNotBuilt:
      if (!is_seen) return std::nullopt;
      finding.state = State::kMissing;
      finding.text = "an NVIDIA GPU's driver is here, and this build has no CUDA";
      finding.remedy = "scripts/setup.sh cuda, then LOCKSTEP_CUDA=ON scripts/build_training.sh";
      return finding;
    case Kind::kNoDriver:
      if (!is_seen) return std::nullopt;
      finding.text = "an NVIDIA GPU's driver is loaded, but " + finding.text;
      return finding;
    case Kind::kNoDevice:
      if (hides_all_on_purpose(facts) || (!facts.mask && !facts.has_traces)) return std::nullopt;
      return finding;
    case Kind::kOldDriver:
    case Kind::kBroken:
      return finding;
  }
  return std::nullopt;
}

std::optional<Finding> no_cudnn(const LibraryFacts& cudnn, const std::string& toolkit) {
  if (cudnn.problem.empty()) return std::nullopt;
  return cudnn_finding(cudnn, toolkit);
}

std::vector<Finding> cuda_findings(const CudaFacts& facts) {
  std::vector<Finding> findings;
  const bool is_built = !facts.obstacle || facts.obstacle->kind != Kind::kNotBuilt;
  if (!facts.driver.empty()) {
    findings.push_back(
        {.subject = "GPU driver", .text = fmt::format("knows CUDA {}", facts.driver)});
  }
  if (const std::optional<Finding> unused = unused_gpu(facts)) {
    findings.push_back(*unused);
  } else if (facts.obstacle) {
    findings.push_back(
        {.subject = "GPU", .text = fmt::format("none: {}", text_of(facts.obstacle->error))});
  }
  for (const cuda::DeviceProperties& gpu : facts.devices) findings.push_back(gpu_finding(gpu));
  if (!is_built) return findings;
  findings.push_back(
      {.subject = "CUDA toolkit", .text = fmt::format("this build uses {}", facts.toolkit)});
  for (Finding finding : {cudnn_finding(facts.cudnn, facts.toolkit),
                          cublaslt_finding(facts.cublaslt, facts.toolkit),
                          nccl_finding(facts.nccl, facts.toolkit)}) {
    if (facts.devices.empty() && finding.state != State::kOk) {  // nothing here misses it
      finding.state = State::kNote;
      finding.remedy.clear();
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace lockstep::trainers
