#include "trainers/machine/run_findings.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/cuda/device.h"
#include "core/words.h"
#include "trainers/machine/cuda_findings.h"

namespace lockstep::trainers {
namespace {

std::string start_text(int ranks, const std::string& program) {
  return fmt::format(
      "scripts/run -np {0} {1}, or torchrun --no-python --nproc_per_node={0} "
      "build/release/bin/{1}",
      ranks,
      program);
}

// Whether training is on the CPU although nobody asked for that.
std::optional<Finding> idle_gpu(const Options& options) {
  if (options.text("device") != "auto") return std::nullopt;
  std::optional<Finding> finding = unused_gpu(read_gpus());
  if (!finding) return std::nullopt;
  finding->text = "training on the CPU: " + finding->text;
  finding->remedy += "; --device cpu asks for the CPU";
  return finding;
}

// Whether training is in f32 although nobody asked for that.
std::optional<Finding> in_f32(const RunRequest& request, const Options& options) {
  if (request.evaluate || request.precision.is_mixed() || options.given("opt-level")) {
    return std::nullopt;
  }
  return Finding{.subject = "precision",
                 .state = Finding::State::kNote,
                 .text = "products are in f32, which leaves this GPU's tensor cores idle",
                 .remedy = "--opt-level O2, or --amp; --opt-level O0 asks for f32"};
}

}  // namespace

GpuShares gather_gpu_shares(Communicator& ranks, const std::string& host) {
  const std::vector<std::string> gpus =
      comm::gather_texts(ranks, fmt::format("{} {}", host, cuda::device_properties().uuid));
  const std::string rank0_host = gpus.front().substr(0, gpus.front().rfind(' ') + 1);
  std::set<std::string> used;
  GpuShares shares = {.visible = cuda::visible_devices()};
  for (const std::string& gpu : gpus) {
    if (!gpu.starts_with(rank0_host)) continue;
    ++shares.ranks;
    used.insert(gpu);
  }
  shares.used = static_cast<int>(used.size());
  return shares;
}

std::vector<Finding> share_findings(const GpuShares& shares, const std::string& program) {
  std::vector<Finding> findings;
  if (shares.ranks > shares.used) {
    findings.push_back({.subject = "ranks",
                        .state = Finding::State::kNote,
                        .text = fmt::format("{} ranks share {}, where one per GPU is faster",
                                            shares.ranks,
                                            counted(shares.used, "GPU")),
                        .remedy = start_text(std::max(shares.used, shares.visible), program)});
  } else if (shares.visible > shares.used) {
    findings.push_back({.subject = "ranks",
                        .state = Finding::State::kNote,
                        .text = fmt::format("{} of this machine's {} GPUs {} without a rank",
                                            shares.visible - shares.used,
                                            shares.visible,
                                            shares.visible - shares.used == 1 ? "is" : "are"),
                        .remedy = start_text(shares.visible, program) +
                                  "; CUDA_VISIBLE_DEVICES names those that a run may use"});
  }
  return findings;
}

std::vector<Finding> run_findings(const RunRequest& request,
                                  const Options& options,
                                  const LibraryVersions& libraries) {
  std::vector<Finding> findings;
  const auto add = [&](const std::optional<Finding>& finding) {
    if (finding) findings.push_back(*finding);
  };
  if (request.device != Device::kCuda) {
    add(idle_gpu(options));
    return findings;
  }
  if (!libraries.contains("cudnn")) add(no_cudnn(read_cudnn(), cuda::runtime_version()));
  add(in_f32(request, options));
  return findings;
}

}  // namespace lockstep::trainers
