#include "trainers/model/models.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "core/error.h"
#include "core/round_up.h"
#include "core/words.h"
#include "data/batch_plan.h"
#include "data/distributed_sampler.h"
#include "nn/airbench.h"
#include "nn/alexnet.h"
#include "nn/cifar_resnet.h"
#include "nn/convnet.h"
#include "nn/functional.h"
#include "nn/ghostnet.h"
#include "nn/resnet.h"
#include "nn/vgg.h"

namespace lockstep::trainers {
namespace {

enum class Family {
  kConvNet,
  kToyNet,
  kResNet,
  kResNeXt,
  kSeResNet,
  kCifarResNet,
  kAlexNet,
  kVgg,
  kVggBn,
  kGhostNet,
  kAirbench
};

struct Network {
  std::string_view name;
  Family family;
  int depth = 0;  // of ResNets; the accuracy that an airbench network is named for

  bool is_tutorials() const { return family == Family::kConvNet || family == Family::kToyNet; }
  bool has_cifar_stem() const { return depth == 18 || depth == 34; }
  bool is_plain_resnet() const { return family == Family::kResNet || family == Family::kResNeXt; }
  bool is_resnet() const { return is_plain_resnet() || family == Family::kSeResNet; }
  bool is_for_cifar() const {
    return family == Family::kCifarResNet || family == Family::kAirbench;
  }
  int64_t smallest_image() const {  // height and width
    if (family == Family::kAirbench) return nn::Airbench::kSmallestImage;
    if (family == Family::kAlexNet) return nn::AlexNet::kSmallestImage;
    const bool vgg = family == Family::kVgg || family == Family::kVggBn;
    return vgg ? nn::Vgg16::kSmallestImage : 1;
  }
  std::optional<int64_t> largest_image() const {
    if (family == Family::kAirbench) return nn::Airbench::kLargestImage;
    return std::nullopt;
  }
};

constexpr std::array<Network, 20> kNetworks = {{{"convnet", Family::kConvNet},
                                                {"toy_net", Family::kToyNet},
                                                {"resnet18", Family::kResNet, 18},
                                                {"resnet34", Family::kResNet, 34},
                                                {"resnet50", Family::kResNet, 50},
                                                {"resnet101", Family::kResNet, 101},
                                                {"resnet152", Family::kResNet, 152},
                                                {"resnext50_32x4d", Family::kResNeXt, 50},
                                                {"seresnet50", Family::kSeResNet, 50},
                                                {"resnet20", Family::kCifarResNet, 20},
                                                {"resnet32", Family::kCifarResNet, 32},
                                                {"resnet44", Family::kCifarResNet, 44},
                                                {"resnet56", Family::kCifarResNet, 56},
                                                {"alexnet", Family::kAlexNet},
                                                {"vgg16", Family::kVgg},
                                                {"vgg16_bn", Family::kVggBn},
                                                {"ghostnet_100", Family::kGhostNet},
                                                {"airbench94", Family::kAirbench, 94},
                                                {"airbench95", Family::kAirbench, 95},
                                                {"airbench96", Family::kAirbench, 96}}};

const Network& find_network(const std::string& name) {
  const auto* found = std::ranges::find(kNetworks, name, &Network::name);
  if (found != kNetworks.end()) return *found;
  std::string names;
  for (const Network& network : kNetworks) names += fmt::format(" {}", network.name);
  throw UsageError(fmt::format("there is no network '{}'", name), "", "--arch, one of" + names);
}

void check_images(const Network& network, const data::ImageShape& image) {
  const data::ImageShape gray{1, 28, 28};
  if (network.is_tutorials() ? image == gray : image.channels == 3) return;
  throw UsageError(
      fmt::format("{} is for {}",
                  network.name,
                  network.is_tutorials() ? "gray images of 28x28 pixels" : "images of 3 channels"),
      fmt::format("the data set's images have {} of {}x{} pixels",
                  counted(image.channels, "channel"),
                  image.height,
                  image.width),
      network.is_tutorials() ? "another --dataset, or train_resnet"
                             : "another --dataset, or train_convnet");
}

void check_size(const Network& network, const data::ImageShape& image) {
  const int64_t smallest = network.smallest_image();
  const int64_t largest = network.largest_image().value_or(std::max(image.height, image.width));
  if (std::max(image.height, image.width) > largest) {
    throw UsageError(
        fmt::format("{} is for images of {}x{} pixels or less", network.name, largest, largest),
        fmt::format("the data set's images have {}x{} pixels, and after the last pool more than "
                    "one would be left",
                    image.height,
                    image.width),
        "--train-crop-size 32 --val-crop-size 32 for photos, or another --arch, such as resnet18");
  }
  if (std::min(image.height, image.width) >= smallest) return;
  throw UsageError(
      fmt::format("{} is for images of {}x{} pixels or more", network.name, smallest, smallest),
      fmt::format("the data set's images have {}x{} pixels, and nothing of them would be left "
                  "after the network's pools",
                  image.height,
                  image.width),
      "--train-crop-size 224 and --val-crop-size 224, or another --arch, such as resnet20 for "
      "32x32 pixels");
}

void check_options(const Network& network, const ModelOptions& options) {
  constexpr int64_t kTutorialClasses = 10;
  if (network.is_tutorials() && options.classes != kTutorialClasses) {
    throw UsageError(fmt::format("{} has 10 outputs", network.name),
                     fmt::format("{} classes were asked for", options.classes),
                     "train_resnet's networks have any number");
  }
  if (options.cifar_stem && !network.has_cifar_stem()) {
    throw UsageError(fmt::format("--cifar-stem: {} has one stem only", network.name),
                     "resnet18 and resnet34 come with a stem for 32x32 images too",
                     "leave it out, or -a resnet18");
  }
  if (options.zero_init_residual && !network.is_resnet()) {
    throw UsageError(
        fmt::format("--zero-init-residual: {} has one initialization only", network.name),
        "resnet18 to resnet152 and resnext50_32x4d can start their residual branches at 0, and "
        "seresnet50 does",
        "--no-zero-init-residual, or -a resnet18");
  }
  if (options.blur_pool && !network.is_resnet()) {
    throw UsageError(fmt::format("--blur-pool: {} has no form with a blur", network.name),
                     "resnet18 to resnet152, resnext50_32x4d and seresnet50 can blur what their "
                     "convolutions with a stride read",
                     "leave it out, or -a resnet50");
  }
  if (options.drop_path > 0 && !network.is_resnet() && network.family != Family::kCifarResNet) {
    throw UsageError(fmt::format("--drop-path: {} has no residual blocks", network.name),
                     "it leaves out the branches of such blocks, beside their shortcuts",
                     "leave it out, or -a resnet50");
  }
}

nn::ResNetOptions resnet_options(const Network& network, const ModelOptions& options) {
  nn::ResNetOptions resnet{.classes = options.classes,
                           .cifar_stem = options.cifar_stem,
                           .zero_init_residual = options.zero_init_residual,
                           .blur_pool = options.blur_pool,
                           .drop_path = options.drop_path};
  if (network.family == Family::kResNeXt) {
    resnet.groups = 32;
    resnet.group_width = 4;
  }
  if (network.family == Family::kSeResNet) {
    resnet.squeeze_excite = true;
    resnet.zero_init_residual = true;  // timm's default
  }
  return resnet;
}

// Returns the fewest images that a batch-norm group gets in a micro-step of this run.
int64_t smallest_group(const BatchDivision& batch,
                       const std::optional<int64_t>& max_steps,
                       int64_t dataset_images) {
  const int64_t replicas = batch.bn_groups * batch.micro_steps;
  const int64_t full = batch.images / replicas;
  if (batch.drop_last) return full;
  const int64_t per_epoch = data::samples_per_replica(
      {.size = dataset_images, .replicas = replicas, .repeats = batch.repeats});
  const int64_t steps = ceil_div(per_epoch, full);
  const bool reaches_last_step = max_steps.value_or(steps) >= steps;
  return reaches_last_step ? per_epoch - (steps - 1) * full : full;
}

// Runs a forward pass on the dry device, where ops check their arguments and compute nothing.
bool trains_on_one_image(const ModelOptions& options) {
  Mt19937 rng(0);
  const std::unique_ptr<nn::Module> model = make_model(options, nn::Init{rng, Device::kDry});
  Stream stream(Device::kDry);
  const auto& [channels, height, width] = options.image;
  const Tensor image = Tensor::empty({1, channels, height, width}, Dtype::kF32, Device::kDry);
  try {
    model->forward(Var(image, nn::make_batch(stream, Shards::single(1))));
  } catch (const ShapeError&) {
    return false;
  }
  return true;
}

}  // namespace

ModelOptions network_of(const RunRequest& request, const data::Dataset& images) {
  return {.arch = request.arch,
          .classes = request.classes.value_or(images.classes()),
          .image = images.image_shape(),
          .cifar_stem = request.cifar_stem,
          .zero_init_residual = request.zero_init_residual,
          .blur_pool = request.blur_pool,
          .drop_path = request.drop_path};
}

void check_network(const ModelOptions& options) {
  const Network& network = find_network(options.arch);
  check_images(network, options.image);
  check_size(network, options.image);
  check_options(network, options);
}

std::unique_ptr<nn::Module> make_model(const ModelOptions& options, const nn::Init& init) {
  check_network(options);
  const Network& network = find_network(options.arch);
  switch (network.family) {
    case Family::kConvNet:
      return std::make_unique<nn::ConvNet>(init);
    case Family::kToyNet:
      return std::make_unique<nn::ToyNet>(init);
    case Family::kResNet:
    case Family::kResNeXt:
    case Family::kSeResNet:
      return std::make_unique<nn::ResNet>(init, network.depth, resnet_options(network, options));
    case Family::kCifarResNet:
      return std::make_unique<nn::CifarResNet>(
          init, network.depth, options.classes, options.drop_path);
    case Family::kAlexNet:
      return std::make_unique<nn::AlexNet>(init, nn::AlexNetOptions{.classes = options.classes});
    case Family::kVgg:
    case Family::kVggBn:
      return std::make_unique<nn::Vgg16>(
          init,
          nn::VggOptions{.classes = options.classes,
                         .batch_norm = network.family == Family::kVggBn});
    case Family::kGhostNet:
      return std::make_unique<nn::GhostNet>(init, nn::GhostNetOptions{.classes = options.classes});
    case Family::kAirbench: {
      nn::AirbenchOptions airbench = nn::airbench_options(network.depth);
      airbench.classes = options.classes;
      return std::make_unique<nn::Airbench>(init, airbench);
    }
  }
  throw InternalError("[make_model] unknown family of networks");
}

ModelOptions at_size(ModelOptions options, const data::ImageShape& image) {
  options.image = image;
  return options;
}

ModelOptions usual_network(const std::string& arch, bool cifar_stem) {
  const Network& network = find_network(arch);
  const bool small = cifar_stem || network.is_for_cifar();
  if (network.is_tutorials()) return {.arch = arch, .image = {1, 28, 28}};
  if (small) return {.arch = arch, .image = {3, 32, 32}, .cifar_stem = cifar_stem};
  return {.arch = arch, .classes = 1000, .image = {3, 224, 224}};
}

void check_classes(const ModelOptions& options, const data::Dataset& dataset) {
  if (options.classes >= dataset.classes()) return;
  throw UsageError(
      fmt::format("--num-classes {} is too few for {}", options.classes, dataset.name()),
      fmt::format("its labels go from 0 to {}", dataset.classes() - 1),
      fmt::format("--num-classes {}, or leave it out", dataset.classes()));
}

void check_batch_norm(const BatchDivision& batch,
                      const std::optional<int64_t>& max_steps,
                      const ModelOptions& model,
                      int64_t dataset_images) {
  if (smallest_group(batch, max_steps, dataset_images) > 1 || trains_on_one_image(model)) return;
  const int64_t replicas = batch.bn_groups * batch.micro_steps;
  throw UsageError(
      fmt::format("a step leaves one image to a batch-norm group, too few for {}", model.arch),
      fmt::format("{} images in steps of {}, dealt to {}: the smallest part is 1 image, and "
                  "the network's last maps are one pixel, so a variance would be of one value",
                  dataset_images,
                  batch.images,
                  counted(replicas, "group")),
      "another -b or --global-batch-size, or fewer --bn-groups (--sync-bn: one)");
}

}  // namespace lockstep::trainers
