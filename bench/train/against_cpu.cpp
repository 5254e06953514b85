#include "bench/train/against_cpu.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "bench/train/synthetic_training.h"
#include "core/cuda/device.h"
#include "core/error.h"
#include "core/transfer.h"
#include "engine/observe/layer_names.h"
#include "kernels/elementwise/copy.h"

namespace lockstep::bench {
namespace {

// A larger difference than these is not due to rounding. Sums are f32 on both devices; a 16-bit op
// may round to the neighboring value.
double tolerance(const PrecisionConfig& precision) {
  if (!precision.is_mixed()) return 2e-4;
  return precision.dtype == Dtype::kF16 ? 4e-3 : 3e-2;
}

// A copy in f32 on the CPU.
Tensor as_f32(Stream& stream, const Tensor& tensor) {
  Tensor on_cpu = Tensor::empty(tensor.shape(), tensor.dtype());
  transfer(stream, tensor, on_cpu);
  stream.synchronize();
  if (tensor.dtype() == Dtype::kF32) return on_cpu;
  Stream cpu;
  Tensor wide = Tensor::empty(tensor.shape(), Dtype::kF32);
  kernels::cast(cpu, on_cpu, wide);
  return wide;
}

double root_mean_square(std::span<const double> values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

struct Seen {
  uint64_t op = 0;
  std::string place;
  Tensor values;  // as the op left them, on the CPU
};

// Keeps the results of the CPU's step, in order.
class Reference : public TapeListener {
 public:
  explicit Reference(const LayerNames& names) : names_(names) {}

  void on_result(const TapeOp& op, const Tensor& result) override { keep(op, "output", result); }
  void on_gradient(const TapeOp& op, size_t i, Tensor& gradient) override {
    keep(op, fmt::format("gradient of input {}", i), gradient);
  }

  const std::vector<Seen>& seen() const { return seen_; }

 private:
  void keep(const TapeOp& op, const std::string& what, const Tensor& tensor) {
    Tensor copy = Tensor::empty(tensor.shape(), tensor.dtype());
    Stream cpu;
    transfer(cpu, tensor, copy);
    const std::string place =
        fmt::format("op {}, {} {}: {}", op.number, op.name, names_.layer_of(op), what);
    seen_.push_back({op.number, place, copy});
  }

  const LayerNames& names_;
  std::vector<Seen> seen_;
};

// Compares the results of CUDA's step, then replaces them with the CPU's.
class Comparison : public TapeListener {
 public:
  Comparison(Stream& stream, const Reference& reference) : stream_(stream), reference_(reference) {}

  void on_result(const TapeOp&, const Tensor& result) override {
    Tensor same_memory = result;
    compare(same_memory);
  }
  void on_gradient(const TapeOp&, size_t, Tensor& gradient) override { compare(gradient); }

  void compare_weights(const nn::Module& ours, const nn::Module& cpus) {
    const auto a = ours.state(), b = cpus.state();
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i].tensor.dtype() != Dtype::kF32) continue;
      note({0, "updated " + a[i].name, b[i].tensor}, a[i].tensor);
    }
  }

  struct Found {
    std::string place;
    double relative;
  };
  // The gradient of a bias before a batch norm is zero except for roundings. The difference of such
  // a gradient is relative to a hundredth of the largest one of its op.
  std::vector<Found> found() const {
    std::unordered_map<uint64_t, double> largest;
    for (const Pair& pair : pairs_) largest[pair.op] = std::max(largest[pair.op], pair.want);
    std::vector<Found> all;
    for (const Pair& pair : pairs_) {
      const double scale = pair.op == 0 ? pair.want : std::max(pair.want, largest[pair.op] / 100);
      const double relative = pair.apart == 0 ? 0 : pair.apart / scale;
      all.push_back({pair.place, std::isnan(relative) ? INFINITY : relative});
    }
    return all;
  }
  bool saw_all() const { return next_ == reference_.seen().size(); }

 private:
  struct Pair {
    uint64_t op;
    std::string place;
    double apart, want;  // root mean squares: of ours - want, of want
  };

  void compare(Tensor& ours) {
    if (saw_all()) throw InternalError("CUDA's step has more ops than the CPU's");
    const Seen& want = reference_.seen()[next_++];
    if (ours.shape() != want.values.shape() || ours.dtype() != want.values.dtype()) {
      throw InternalError(
          fmt::format("CUDA's step has another tensor than the CPU's {}", want.place));
    }
    note(want, ours);
    transfer(stream_, want.values, ours);
    stream_.synchronize();
  }

  void note(const Seen& want, const Tensor& ours) {
    Stream cpu;
    const Tensor a = as_f32(stream_, ours), b = as_f32(cpu, want.values);
    std::vector<double> values(b.span<float>().begin(), b.span<float>().end());
    const double of_want = root_mean_square(values);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] -= static_cast<double>(a.span<float>()[i]);
    }
    pairs_.push_back({want.op, want.place, root_mean_square(values), of_want});
  }

  Stream& stream_;
  const Reference& reference_;
  size_t next_ = 0;
  std::vector<Pair> pairs_;
};

// One device's step.
struct Step {
  Step(const SyntheticOptions& options, Device device)
      : run{.request = run_request(options)},
        stream(device),
        rng(run.request.seeds.weights),
        model(trainers::make_model(model_options(options), nn::Init{rng, device})),
        names(model->named_parameters()) {
    run.request.device = device;
    run.request.graph = false;
    run.request.batch.shards = run.request.batch.bn_groups = 1;
    if (auto& scaling = run.request.precision.loss_scaling) {
      scaling->initial = 1024;  // PyTorch's first scale makes gradients infinite in early steps
    }
    run.batch = divide_batch(run.request.batch, run.request.device, 1, 1);
  }

  void take(const SyntheticOptions& options, Communicator& alone, TapeListener& listener) {
    const trainers::ModelOptions network = model_options(options);
    SyntheticTraining({.run = run,
                       .network = network,
                       .ranks = alone,
                       .stream = stream,
                       .model = *model,
                       .listener = &listener})
        .step();
    stream.synchronize();
  }

  trainers::ResolvedRun run;
  Stream stream;
  Mt19937 rng;
  std::unique_ptr<nn::Module> model;
  LayerNames names;
};

std::string report(const SyntheticOptions& options,
                   std::vector<Comparison::Found> found,
                   double limit) {
  std::ranges::sort(found, std::ranges::greater(), &Comparison::Found::relative);
  nlohmann::ordered_json largest = nlohmann::ordered_json::array();
  for (size_t i = 0; i < std::min<size_t>(found.size(), 10); ++i) {
    largest.push_back({{"place", found[i].place}, {"difference", found[i].relative}});
  }
  const nlohmann::ordered_json json = {{"arch", options.arch},
                                       {"batch_size", options.batch_size},
                                       {"compared", found.size()},
                                       {"tolerance", limit},
                                       {"largest_difference", found.front().relative},
                                       {"largest", largest}};
  return json.dump() + "\n";
}

}  // namespace

std::string compare_step(const SyntheticOptions& options,
                         const comm::Launch& launch,
                         Communicator& ranks) {
  if (options.device != Device::kCuda || ranks.size() > 1) {
    throw UsageError(
        "--against-cpu compares CUDA with the CPU on one rank",
        fmt::format("{} on {} ranks was asked for", name_of(options.device), ranks.size()),
        "--device cuda on one rank");
  }
  cuda::select_device(launch.local_rank, launch.local_size);
  Step on_cpu(options, Device::kCpu);
  Reference reference(on_cpu.names);
  on_cpu.take(options, ranks, reference);
  Step on_cuda(options, Device::kCuda);
  Comparison comparison(on_cuda.stream, reference);
  on_cuda.take(options, ranks, comparison);
  comparison.compare_weights(*on_cuda.model, *on_cpu.model);

  const double limit = tolerance(on_cuda.run.request.precision);
  const std::vector<Comparison::Found> all = comparison.found();
  const std::string text = report(options, all, limit);
  if (!comparison.saw_all()) throw InternalError("CUDA's step has fewer ops than the CPU's");
  for (const Comparison::Found& found : all) {
    if (found.relative <= limit) continue;
    throw InternalError(
        fmt::format("CUDA differs from the CPU by {:.2g} in {}, at most {:.2g} are roundings\n{}",
                    found.relative,
                    found.place,
                    limit,
                    text));
  }
  return text;
}

}  // namespace lockstep::bench
