#include "engine/observe/fault.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/first_few.h"
#include "core/transfer.h"

namespace lockstep {
namespace {

constexpr const char* kSlow = "slow";
constexpr const char* kSlowNet = "slownet";
constexpr const char* kLoop = "loop";

template <class T>
void fill(Tensor& tensor, double value) {
  std::ranges::fill(tensor.span<T>(), T(static_cast<float>(value)));
}

void fill_with(double value, Tensor tensor) {
  Tensor values = Tensor::empty(tensor.shape(), tensor.dtype());
  switch (tensor.dtype()) {
    case Dtype::kF16:
      fill<Half>(values, value);
      break;
    case Dtype::kBF16:
      fill<BFloat16>(values, value);
      break;
    default:
      fill<float>(values, value);
  }
  overwrite(values, tensor);
}

}  // namespace

void delay(const std::optional<Fault>& fault, int rank) {
  if (!fault || fault->kind != kSlow || fault->rank != rank) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(fault->number));
}

namespace {

// A sum that arrives no earlier than a given time after its start.
class LateWork : public Work {
 public:
  LateWork(std::unique_ptr<Work> work, std::chrono::milliseconds delay)
      : work_(std::move(work)), arrives_(Clock::now() + delay) {}

  bool advance() override { return work_->advance() && Clock::now() >= arrives_; }
  void wait() override {
    work_->wait();
    std::this_thread::sleep_until(arrives_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  const std::unique_ptr<Work> work_;
  const Clock::time_point arrives_;
};

// A sum whose messages never reach this rank.
class LostWork : public Work {
 public:
  explicit LostWork(std::unique_ptr<Work> work) : work_(std::move(work)) {}

  bool advance() override { return false; }
  void wait() override {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }

 private:
  const std::unique_ptr<Work> work_;
};

}  // namespace

comm::BucketExchange disturbed_exchange(const Fault& fault, Algorithm algorithm, Device device) {
  if (device != Device::kCpu) {
    throw UsageError(fmt::format("the fault {} is for the CPU", fault.kind),
                     "sums on a GPU are not awaited by the host",
                     "train on the CPU, or without the fault");
  }
  return [fault, algorithm, step = int64_t{0}](
             Communicator& peers, comm::Bucket& bucket) mutable -> std::unique_ptr<Work> {
    if (bucket.index == 0) ++step;
    const bool strikes = fault.strikes(peers.rank()) && step == fault.number;
    if (strikes && fault.kind == "skip") return nullptr;
    const AllReduce sum{.values = bucket.values, .algorithm = algorithm, .label = bucket.label};
    std::unique_ptr<Work> work = peers.start_all_reduce(sum);
    if (fault.kind == kSlowNet) return std::make_unique<LateWork>(std::move(work), fault.delay());
    if (strikes) return std::make_unique<LostWork>(std::move(work));
    return work;
  };
}

void damage_weights(const Fault& fault, nn::Module& model) {
  Tensor parameter = model.parameters().front().value();
  Tensor first = to_cpu(parameter);
  if (fault.kind == "flipbit") *first.bytes() ^= std::byte{1};
  if (fault.kind == "nan") *first.data<float>() = std::numeric_limits<float>::quiet_NaN();
  if (parameter.device() != Device::kCpu) overwrite(first, parameter);
}

LayerFault::LayerFault(const Fault& fault, const nn::Module& model, int64_t run_ranks)
    : fault_(fault), names_(model.named_parameters()), run_ranks_(run_ranks) {
  const std::vector<std::string>& layers = names_.layers();
  if (fault.layer.empty() || std::ranges::find(layers, fault.layer) != layers.end()) return;
  throw UsageError(fmt::format("a fault strikes layer {}", fault.layer),
                   "the network has no such layer",
                   fmt::format("one of {}", first_few(layers)));
}

TapeListener* LayerFault::listener(int64_t step, const Shards& shards, TapeListener* next) {
  const bool strikes = step >= fault_.number && step < fault_.number + fault_.count;
  const int64_t shard = fault_.rank * shards.total / run_ranks_ - shards.first;
  if (!strikes || shards.micro_step > 0 || shard < 0 || shard >= shards.local()) return next;
  if (shards.count(shard) == 0) return next;
  next_ = next;
  shard_ = shard;
  image_ = shards.begin(shard);
  return this;
}

void LayerFault::on_result(const TapeOp& op, const Tensor& result) {
  if (fault_.kind == kLoop && strikes(op)) {
    std::atomic<uint64_t> turns = 0;
    for (;;) turns.fetch_add(1, std::memory_order_relaxed);
  }
  if (next_ != nullptr) next_->on_result(op, result);
}

bool LayerFault::strikes(const TapeOp& op) const {
  return fault_.layer.empty() ? op.name.ends_with("cross_entropy")
                              : names_.layer_of(op) == fault_.layer;
}

void LayerFault::on_gradient(const TapeOp& op, size_t i, Tensor& gradient) {
  if (fault_.kind != kLoop && strikes(op)) {
    const bool leaves = !names_.parameter(op.inputs[i]).empty();
    fill_with(fault_.value, gradient.slice(leaves ? shard_ : image_, 1));
  }
  if (next_ != nullptr) next_->on_gradient(op, i, gradient);
}

}  // namespace lockstep
