#include "trainers/debug/fault.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <regex>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <signal.h>

#include "core/error.h"
#include "core/transfer.h"
#include "core/words.h"

namespace lockstep::trainers {
namespace {

constexpr const char* kSlow = "slow";

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

std::optional<Fault> parse_fault(const std::string& text) {
  if (text.empty()) return std::nullopt;
  static const std::regex of_all_ranks(R"((slowdisk|slowdecode|slownet):ms=(\d{1,5}))");
  if (std::smatch match; std::regex_match(text, match, of_all_ranks)) {
    return Fault{.kind = match[1], .number = std::stoll(match[2])};
  }
  static const std::regex pattern(
      R"((?:(flipbit|kill|stop|nan|inf):rank=(\d{1,4}),step|(slow):rank=(\d{1,4}),ms)=(\d{1,9}))"
      R"((?:,count=(\d{1,9}))?(?:,layer=([\w.]+))?(?:,value=([-+.\deE]+))?)");
  std::smatch match;
  const bool understood = std::regex_match(text, match, pattern);
  const bool of_gradient = understood && (match[6].matched || match[7].matched || match[8].matched);
  const std::optional<double> value =
      understood && match[8].matched ? parse_float(match[8].str()) : Fault().value;
  if (!understood || !value || (of_gradient && match[1] != "inf")) {
    throw UsageError(fmt::format("LOCKSTEP_FAULT is '{}'", text),
                     "it takes flipbit, kill, stop, nan or inf, a rank and a step, or slow, a rank "
                     "and milliseconds, or slowdisk, slowdecode or slownet and milliseconds",
                     "LOCKSTEP_FAULT=flipbit:rank=1,step=30, or unset it");
  }
  const size_t kind = match[1].matched ? 1 : 3;
  return Fault{.kind = match[kind],
               .rank = std::stoi(match[kind + 1]),
               .number = std::stoll(match[5]),
               .count = match[6].matched ? std::stoll(match[6]) : 1,
               .layer = match[7],
               .value = *value};
}

void delay(const std::optional<Fault>& fault, int rank) {
  if (!fault || fault->kind != kSlow || fault->rank != rank) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(fault->number));
}

namespace {

// A sum that is there some time after it was started, at the earliest.
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

}  // namespace

comm::BucketExchange slow_exchange(const Fault& fault, Algorithm algorithm, Device device) {
  if (device != Device::kCpu) {
    throw UsageError("LOCKSTEP_FAULT=slownet is for the CPU",
                     "sums on a GPU are not awaited by the host",
                     "--device cpu, or unset it");
  }
  return [delay = fault.delay(), algorithm](Communicator& peers, comm::Bucket& bucket) {
    const AllReduce sum{.values = bucket.values, .algorithm = algorithm, .label = bucket.label};
    return std::make_unique<LateWork>(peers.start_all_reduce(sum), delay);
  };
}

void inject(const std::optional<Fault>& fault, int rank, int64_t step, nn::Module& model) {
  if (!fault || fault->kind == kSlow || fault->is_of_gradient() || fault->is_of_photos() ||
      fault->is_of_network() || fault->rank != rank || fault->number != step)
    return;
  fmt::print(stderr, "LOCKSTEP_FAULT: {} on rank {} after step {}\n", fault->kind, rank, step);
  if (fault->kind == "kill") raise(SIGKILL);
  if (fault->kind == "stop") raise(SIGSTOP);
  Tensor parameter = model.parameters().front().value();
  Tensor first = to_cpu(parameter);
  if (fault->kind == "flipbit") *first.bytes() ^= std::byte{1};
  if (fault->kind == "nan") *first.data<float>() = std::numeric_limits<float>::quiet_NaN();
  if (parameter.device() != Device::kCpu) overwrite(first, parameter);
}

GradientFault::GradientFault(const Fault& fault, const nn::Module& model, int64_t run_ranks)
    : fault_(fault), names_(model.named_parameters()), run_ranks_(run_ranks) {
  const std::vector<std::string>& layers = names_.layers();
  if (fault.layer.empty() || std::ranges::find(layers, fault.layer) != layers.end()) return;
  throw UsageError(fmt::format("LOCKSTEP_FAULT strikes layer {}", fault.layer),
                   "the network has no such layer",
                   fmt::format("one of {}", fmt::join(layers, ", ")));
}

TapeListener* GradientFault::listener(int64_t step, const Shards& shards, TapeListener* next) {
  const bool strikes = step >= fault_.number && step < fault_.number + fault_.count;
  const int64_t shard = fault_.rank * shards.total / run_ranks_ - shards.first;
  if (!strikes || shards.micro_step > 0 || shard < 0 || shard >= shards.local()) return next;
  if (shards.count(shard) == 0) return next;
  next_ = next;
  shard_ = shard;
  image_ = shards.begin(shard);
  return this;
}

void GradientFault::on_result(const TapeOp& op, const Tensor& result) {
  if (next_ != nullptr) next_->on_result(op, result);
}

void GradientFault::on_gradient(const TapeOp& op, size_t i, Tensor& gradient) {
  const bool struck = fault_.layer.empty() ? op.name == "softmax_cross_entropy"
                                           : names_.layer_of(op) == fault_.layer;
  if (struck) {
    const bool leaves = !names_.parameter(op.inputs[i]).empty();
    fill_with(fault_.value, gradient.slice(leaves ? shard_ : image_, 1));
  }
  if (next_ != nullptr) next_->on_gradient(op, i, gradient);
}

}  // namespace lockstep::trainers
