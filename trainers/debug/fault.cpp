#include "trainers/debug/fault.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <signal.h>

#include "core/error.h"
#include "core/first_few.h"
#include "core/transfer.h"
#include "core/words.h"
#include "trainers/report/print.h"

namespace lockstep::trainers {
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

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// "rank=1,step=30", word by word.
class FaultWords {
 public:
  explicit FaultWords(std::string_view text) : words_(split_words(text, ',')) {}

  bool at_end() const { return next_ == words_.size(); }
  // Returns the value of the next word if it has this key.
  std::optional<std::string_view> value(std::string_view key) {
    if (at_end()) return std::nullopt;
    const std::string_view word = words_[next_];
    if (!word.starts_with(key) || !word.substr(key.size()).starts_with('=')) return std::nullopt;
    ++next_;
    return word.substr(key.size() + 1);
  }
  // Parses the value of the next word if it has this key: at most `digits` digits. Returns false
  // for other text, and `optional` if the key is absent.
  template <class T>
  bool number(std::string_view key, size_t digits, T& number, bool optional = false) {
    const std::optional<std::string_view> text = value(key);
    if (!text) return optional;
    const std::optional<int64_t> found = parse_int(*text);
    if (!found || *found < 0 || text->size() > digits) return false;
    number = static_cast<T>(*found);
    return true;
  }

 private:
  const std::vector<std::string_view> words_;
  size_t next_ = 0;
};

bool read_layer(FaultWords& words, std::string& layer) {
  const std::optional<std::string_view> name = words.value("layer");
  layer = name.value_or("");
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; };
  return !name || (!name->empty() && std::ranges::all_of(*name, is_part));
}

bool read_value(FaultWords& words, double& value) {
  const std::optional<std::string_view> text = words.value("value");
  const std::optional<double> number = text ? parse_float(*text) : value;
  value = number.value_or(0);
  return number.has_value();
}

bool read_fault(std::string_view text, Fault& fault) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.ends_with(',')) return false;
  fault.kind = text.substr(0, colon);
  FaultWords words(text.substr(colon + 1));
  if (fault.slows_photos() || fault.kind == kSlowNet) {
    fault.rank = Fault::kAllRanks;
    const bool is_read = words.number("ms", 5, fault.number);
    const bool may_name_rank = fault.slows_photos();
    return is_read && (!may_name_rank || words.number("rank", 4, fault.rank, true)) &&
           words.at_end();
  }
  if (!fault.breaks_layer() && !fault.breaks_exchange() &&
      !is_one_of(fault.kind, {"flipbit", "kill", "stop", "nan", kSlow})) {
    return false;
  }
  if (!words.number("rank", 4, fault.rank)) return false;
  if (!words.number(fault.kind == kSlow ? "ms" : "step", 9, fault.number)) return false;
  if (!fault.breaks_layer()) return words.at_end();
  if (fault.kind == kLoop) return read_layer(words, fault.layer) && words.at_end();
  return words.number("count", 9, fault.count, true) && read_layer(words, fault.layer) &&
         read_value(words, fault.value) && words.at_end();
}

}  // namespace

std::optional<Fault> parse_fault(const std::string& text) {
  if (text.empty()) return std::nullopt;
  Fault fault;
  if (read_fault(text, fault)) return fault;
  throw UsageError(fmt::format("LOCKSTEP_FAULT is '{}'", printable(text)),
                   "it takes flipbit, kill, stop, nan, inf, loop, skip or lost, a rank and a step, "
                   "or slow, a rank and milliseconds, or slowdisk, slowdecode or slownet and "
                   "milliseconds",
                   "LOCKSTEP_FAULT=flipbit:rank=1,step=30, or unset it");
}

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
    throw UsageError(fmt::format("LOCKSTEP_FAULT={} is for the CPU", fault.kind),
                     "sums on a GPU are not awaited by the host",
                     "--device cpu, or unset it");
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

void inject(const std::optional<Fault>& fault, int rank, int64_t step, nn::Module& model) {
  if (!fault || !is_one_of(fault->kind, {"flipbit", "kill", "stop", "nan"})) return;
  if (fault->rank != rank || fault->number != step) return;
  const std::string what = fmt::format("{} on rank {} after step {}", fault->kind, rank, step);
  print(stderr, fmt::format("LOCKSTEP_FAULT: {}\n", what));
  if (fault->kind == "kill") raise(SIGKILL);
  if (fault->kind == "stop") raise(SIGSTOP);
  Tensor parameter = model.parameters().front().value();
  Tensor first = to_cpu(parameter);
  if (fault->kind == "flipbit") *first.bytes() ^= std::byte{1};
  if (fault->kind == "nan") *first.data<float>() = std::numeric_limits<float>::quiet_NaN();
  if (parameter.device() != Device::kCpu) overwrite(first, parameter);
}

LayerFault::LayerFault(const Fault& fault, const nn::Module& model, int64_t run_ranks)
    : fault_(fault), names_(model.named_parameters()), run_ranks_(run_ranks) {
  const std::vector<std::string>& layers = names_.layers();
  if (fault.layer.empty() || std::ranges::find(layers, fault.layer) != layers.end()) return;
  throw UsageError(fmt::format("LOCKSTEP_FAULT strikes layer {}", fault.layer),
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

}  // namespace lockstep::trainers
