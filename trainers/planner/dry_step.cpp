#include "trainers/planner/dry_step.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/mt19937.h"
#include "core/tensor.h"
#include "engine/evaluation/forward_views.h"
#include "engine/observe/layer_names.h"
#include "engine/update/make_optimizer.h"
#include "engine/update/weights.h"
#include "kernels/image/mix_images.h"
#include "nn/functional.h"

namespace lockstep::trainers {
namespace {

// Measures memory of the dry device.
class Meter {
 public:
  // Returns the bytes taken since the last call.
  int64_t taken() {
    const int64_t now = dry_bytes_in_use();
    const int64_t since = now - last_;
    last_ = now;
    return since;
  }

 private:
  int64_t last_ = dry_bytes_in_use();
};

// Assigns entries of the ledger to layers.
class LayerMeter final : public TapeListener {
 public:
  LayerMeter(const LayerNames& names, Stream& stream, std::vector<LayerCost>& layers)
      : names_(names), stream_(stream), layers_(layers) {}

  void on_result(const TapeOp& op, const Tensor& /*result*/) override { add(name_of(op)); }
  void on_gradient(const TapeOp& op, size_t /*i*/, Tensor& /*gradient*/) override {
    add(name_of(op));
  }
  // Adds the entries since the last call to the layer `name`.
  void add(const std::string& name) {
    auto layer = std::ranges::find(layers_, name, &LayerCost::name);
    if (layer == layers_.end()) layer = layers_.insert(layer, {.name = name});
    for (; counted_ < stream_.ledger().size(); ++counted_) {
      layer->flops += stream_.ledger()[counted_].flops;
      layer->bytes += stream_.ledger()[counted_].bytes;
    }
  }

 private:
  std::string name_of(const TapeOp& op) const {
    const std::string layer = names_.layer_of(op);
    return layer.empty() ? std::string(op.name) : layer;
  }

  const LayerNames& names_;
  Stream& stream_;
  std::vector<LayerCost>& layers_;
  size_t counted_ = 0;
};

// The optimizer of the step. Notes its state.
std::unique_ptr<nn::Optimizer> make_metered(const StepExtras& extras,
                                            const nn::Module& model,
                                            Meter& meter,
                                            StepMemory& memory) {
  OptimizerOptions config = extras.optimizer;
  const bool averages = config.ema > 0;
  config.ema = 0;
  std::unique_ptr<nn::Optimizer> optimizer =
      make_optimizer(config, model.named_parameters(), buffers_of(model));
  memory.optimizer = meter.taken();
  if (averages) {
    optimizer = std::make_unique<nn::Ema>(std::move(optimizer), buffers_of(model), 0.9999);
    optimizer->set_applied_steps(1);  // the first step copies the weights
  }
  memory.average = meter.taken();
  return optimizer;
}

// Bytes of an image on its way to the device: pixels, label, index and number.
int64_t uploaded_bytes(const data::ImageShape& image) {
  return image.channels * image.height * image.width + 4 + 8 + 8;
}

// Returns the bytes of a pool for an evaluation of one batch. Images that are being uploaded lie
// there too.
int64_t evaluation_bytes(nn::Module& model,
                         const data::ImageShape& image,
                         const StepExtras& extras,
                         const Precision& precision) {
  const int64_t images = extras.evaluated;
  if (images == 0) return 0;
  const DryRecord made;
  const Tensor uploads = Tensor::empty({images * uploaded_bytes(image)}, Dtype::kU8, Device::kDry);
  Stream stream(Device::kDry);
  model.train(false);
  {
    const Tensor pixels = Tensor::empty(
        {images, image.channels, image.height, image.width}, Dtype::kU8, Device::kDry);
    Tensor indices;
    if (extras.views != TestViews::kOne) {
      indices = Tensor::empty({images}, Dtype::kI64, Device::kDry);
    }
    const auto batch = nn::make_batch(stream, Shards::single(images), false, precision);
    const Var logits = forward_views(model, {.views = extras.views}, {pixels, indices, batch});
    const Tensor labels = Tensor::empty({images}, Dtype::kI32, Device::kDry);
    nn::softmax_cross_entropy(logits, labels);
  }
  model.train(true);
  return made.pool_bytes();
}

// Returns the sums of earlier micro-steps that comm::TreeCounter keeps while one runs: at most one
// of each power of two.
std::vector<Tensor> kept_sums(const nn::Module& model, const StepExtras& extras) {
  std::vector<Tensor> sums;
  for (int64_t steps = extras.micro_steps; steps > 1; steps /= 2) {
    for (const Var& parameter : model.parameters()) {
      const Shape shape = {extras.shards, parameter.value().numel()};
      sums.push_back(Tensor::empty(shape, Dtype::kF32, Device::kDry));
    }
  }
  return sums;
}

}  // namespace

DryStep run_dry_step(const ModelOptions& network,
                     int64_t images,
                     const PrecisionConfig& precision,
                     const StepExtras& extras) {
  DryStep step{.images = images};
  Meter meter;
  Mt19937 rng(0);
  const auto model = make_model(network, nn::Init{rng, Device::kDry});
  step.parameters = model->parameter_count();
  step.memory.parameters = meter.taken();
  const StoredWeights stored(precision, *model);
  step.memory.copies = meter.taken();
  const std::unique_ptr<nn::Optimizer> optimizer = make_metered(extras, *model, meter, step.memory);
  for (Var parameter : model->parameters()) {  // as comm::GradientReducer's buckets
    const Tensor sum = Tensor::empty(parameter.shape(), Dtype::kF32, Device::kDry);
    parameter.on_grad_ready([sum](Var& complete) { complete.set_grad(sum); });
  }
  step.memory.gradients = meter.taken();

  step.memory.evaluation = evaluation_bytes(
      *model, extras.test_image.value_or(network.image), extras, precision.network());
  const DryRecord made;
  const std::vector<Tensor> sums = kept_sums(*model, extras);
  Stream stream(Device::kDry);
  const Shards shards = Shards::cut(images, extras.shards, 1);
  const LayerNames names(model->named_parameters());
  LayerMeter layers(names, stream, step.layers);
  {
    const auto [channels, height, width] = network.image;
    const Var x = nn::normalize_image(
        Tensor::empty({images, channels, height, width}, Dtype::kU8, Device::kDry),
        nn::make_batch(stream, shards, true, precision.network(), &layers));
    kernels::ClassLossParams mixed;
    if (extras.mixup) {
      mixed.mix = Tensor::empty({1}, Dtype::kF32, Device::kDry);
      Tensor pixels = x.value();
      kernels::mix_images(stream, shards, mixed.mix, pixels);
    }
    layers.add("images");
    const int64_t box = extras.erases ? 4 * 4 : 0;
    step.memory.batches = 2 * images * (uploaded_bytes(network.image) + box);
    if (extras.graph) {
      step.memory.batches += static_cast<int64_t>(x.value().nbytes()) + images * (4 + 8);
    }
    const Tensor labels = Tensor::empty({images}, Dtype::kI32, Device::kDry);
    nn::CrossEntropy result = nn::softmax_cross_entropy(model->forward(x), labels, mixed);
    step.memory.activations = made.bytes_in_use();
    result.loss.backward();
  }
  step.update_begins = std::ssize(stream.ledger());
  optimizer->step(stream);
  step.memory.made = made.peak_bytes_in_use();
  step.memory.placed = made.pool_bytes();
  step.ledger = stream.ledger();
  return step;
}

}  // namespace lockstep::trainers
