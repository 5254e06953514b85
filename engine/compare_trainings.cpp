#include "engine/compare_trainings.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/handshake.h"
#include "core/cuda/device.h"
#include "engine/library_versions.h"
#include "kernels/support/onednn/version.h"

namespace lockstep {
namespace {

std::string text_of(const std::optional<int64_t>& number) {
  return number ? std::to_string(*number) : "default";
}

// Each tensor's name and shape.
std::string text_of(const nn::Module& network) {
  std::vector<std::string> tensors;
  for (const nn::StateEntry& entry : network.state()) {
    tensors.push_back(entry.name + to_string(entry.file_shape));
  }
  return fmt::format("{}", fmt::join(tensors, " "));
}

std::string names_of_trained(const nn::Module& network) {
  std::vector<std::string> names;
  for (const nn::NamedParameter& parameter : network.named_parameters()) {
    if (parameter.var.requires_grad()) names.push_back(parameter.name);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string text_of(const ParameterRule& rule) {
  return fmt::format("{} lr {} weight_decay {} by_sgd {} epochs {}",
                     rule.pattern,
                     rule.lr,
                     rule.weight_decay.value_or(-1),
                     rule.by_sgd,
                     rule.epochs.value_or(-1));
}

std::string text_of(const OptimizerOptions& optimizer) {
  std::string text =
      fmt::format("kind {}, lr {}, momentum {}, nesterov {}, weight_decay {}, clip_grad_norm {}",
                  fmt::underlying(optimizer.kind),
                  optimizer.lr,
                  optimizer.momentum,
                  optimizer.nesterov,
                  optimizer.weight_decay,
                  optimizer.clip_grad_norm);
  text += fmt::format(", ema {}, lr_unit {}, muon_dtype {}, bias_decay {}",
                      optimizer.ema,
                      fmt::underlying(optimizer.lr_unit),
                      name_of(optimizer.muon_dtype),
                      optimizer.groups.bias_decay);
  for (const ParameterRule& rule : optimizer.groups.rules) text += ", rule " + text_of(rule);
  if (const auto& larc = optimizer.larc) {
    text += fmt::format(", larc {} {}", larc->trust_coefficient, larc->clip);
  }
  if (const auto& ahead = optimizer.lookahead) {
    text += fmt::format(
        ", lookahead {} {} {}", ahead->k, ahead->alpha, fmt::underlying(ahead->variant));
  }
  return text;
}

std::string text_of(const ScheduleOptions& schedule) {
  std::string text = fmt::format("kind {}, step_epochs {}, gamma {}, warmup_epochs {}",
                                 fmt::underlying(schedule.kind),
                                 schedule.step_epochs,
                                 schedule.gamma,
                                 schedule.warmup_epochs);
  text += fmt::format(", on_updates {}, milestones {}, power {}, min_factor {}",
                      schedule.on_updates,
                      fmt::join(schedule.milestones, " "),
                      schedule.power,
                      schedule.min_factor);
  const OneCycleOptions& cycle = schedule.one_cycle;
  const TriangularOptions& triangle = schedule.triangular;
  text += fmt::format(", one_cycle {} {} {}, triangular {} {} {}",
                      cycle.pct_start,
                      cycle.div,
                      cycle.final_div,
                      triangle.start,
                      triangle.peak,
                      triangle.end);
  const WarmupOptions& warmup = schedule.warmup;
  const PlateauOptions& plateau = schedule.plateau;
  return text + fmt::format(", warmup {} {} {}, plateau {} {} {} {}",
                            fmt::underlying(warmup.method),
                            warmup.decay,
                            warmup.is_prefix,
                            plateau.patience,
                            plateau.threshold,
                            plateau.on_accuracy,
                            plateau.upwards);
}

std::string text_of(const ImageOptions& images) {
  std::string text = "usual";
  if (const auto& normalize = images.normalize) {
    text = fmt::format(
        "normalize {} {}", fmt::join(normalize->mean, " "), fmt::join(normalize->std, " "));
  }
  if (const auto& changes = images.augmentation) {
    const RandAugment& rand = changes->rand;
    text += fmt::format(", pad {} {}, flip {}, resized_crop {}, trivial {}, bilinear {}",
                        changes->pad,
                        fmt::underlying(changes->pad_mode),
                        fmt::underlying(changes->flip),
                        changes->resized_crop,
                        changes->trivial,
                        changes->bilinear);
    text += fmt::format(", rand {} {} {} {} {} {} {}",
                        rand.layers,
                        rand.magnitude,
                        rand.deviation,
                        rand.uniform,
                        rand.most,
                        rand.probability,
                        rand.increasing);
  }
  return text;
}

}  // namespace

void compare_trainings(Communicator& ranks,
                       const nn::Module& network,
                       const data::DatasetPair& images,
                       const TrainerOptions& options) {
  if (ranks.size() == 1) return;
  using Kind = comm::HandshakeField::Kind;
  std::vector<comm::HandshakeField> fields;
  for (const auto& [library, version] : library_versions()) {
    fields.push_back({Kind::kEnvironment, library, version});
  }
  fields.push_back(
      {Kind::kEnvironment, "bf16 products", kernels::onednn_has_bf16() ? "native" : "in f32"});
  const auto add = [&](const char* name, std::string value) {
    fields.push_back({Kind::kArgument, name, std::move(value)});
  };
  add("batch", std::to_string(options.batch));
  add("shards", text_of(options.shards));
  add("batch_norm_groups", text_of(options.batch_norm_groups));
  add("epochs", std::to_string(options.epochs));
  add("optimizer", text_of(options.optimizer));
  add("schedule", text_of(options.schedule));
  add("images", text_of(options.images));
  add("label_smoothing", fmt::format("{}", options.label_smoothing));
  add("precision.level", std::to_string(options.precision.level));
  add("precision.half", std::string(name_of(options.precision.half)));
  add("seed", std::to_string(options.seed));
  add("test_batch", std::to_string(options.test_batch));
  add("network", text_of(network));
  add("trained parameters", names_of_trained(network));
  add("training images", images.train->digest());
  add("test images", images.test->digest());
  fields.push_back({Kind::kEnvironment,
                    "device",
                    options.rank.device == Device::kCpu ? "cpu" : cuda::device_properties().name});
  comm::handshake(ranks, fields);
}

}  // namespace lockstep
