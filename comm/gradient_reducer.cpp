#include "comm/gradient_reducer.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "comm/staged_exchange.h"
#include "core/check.h"
#include "core/error.h"
#include "core/first_few.h"
#include "kernels/elementwise/copy.h"
#include "kernels/elementwise/fill.h"
#include "kernels/elementwise/scale.h"
#include "kernels/reduce/tree_sum.h"

namespace lockstep::comm {

GradientReducer::GradientReducer(Communicator& peers,
                                 Stream& stream,
                                 std::vector<Var> parameters,
                                 std::vector<std::string> names,
                                 ReducerOptions options)
    : peers_(peers),
      stream_(stream),
      parameters_(std::move(parameters)),
      names_(std::move(names)),
      options_(std::move(options)),
      gradients_(parameters_.size()),
      clock_(0) {
  LS_CHECK(names_.size() == parameters_.size(),
           "[gradient_reducer] names: got {} for {} parameters",
           names_.size(),
           parameters_.size());
  LS_CHECK(options_.micro_steps >= 1,
           "[gradient_reducer] micro-steps: got {}, expected 1 or more",
           options_.micro_steps);
  LS_CHECK(!options_.ask || stream_.device() == Device::kCpu,
           "[gradient_reducer] ask: the ranks' answers are read on the CPU alone");
  LS_CHECK(options_.predivide > 0,
           "[gradient_reducer] predivide: got {}, expected a positive number",
           options_.predivide);
  choose_exchanged();
  place_gradients();
  if (stream_.device() == Device::kCuda && options_.algorithm != Algorithm::kNone) {
    if (options_.on_device) {
      device_ = options_.on_device(peers_, stream_, buckets_);
    } else if (peers_.size() > 1) {
      device_ = std::make_unique<StagedExchange>(peers_, stream_);
    }
  }
  const bool leaves_travel = options_.micro_steps == 1 && options_.wire == Dtype::kF32;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!gradients_[i].exchanged) continue;
    parameters_[i].on_grad_ready([this, i](Var&) { on_grad_ready(i); });
    if (leaves_travel) parameters_[i].set_grad_memory(gradients_[i].wire);
  }
}

GradientReducer::~GradientReducer() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!gradients_[i].exchanged) continue;
    parameters_[i].on_grad_ready({});
    parameters_[i].set_grad_memory({});
  }
}

void GradientReducer::choose_exchanged() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Dtype dtype = parameters_[i].value().dtype();
    if (dtype != Dtype::kF32) {
      throw DtypeError(
          fmt::format("[gradient_reducer] {}: dtype {}, expected f32", names_[i], name_of(dtype)));
    }
    const auto earlier = parameters_.begin() + static_cast<std::ptrdiff_t>(i);
    const bool repeated = std::any_of(parameters_.begin(), earlier, [&](const Var& parameter) {
      return parameter.same_as(parameters_[i]);
    });
    gradients_[i].required = parameters_[i].requires_grad();
    gradients_[i].exchanged = gradients_[i].required && !repeated;
    if (gradients_[i].exchanged && parameters_[i].has_grad_hook()) {
      throw UsageError(fmt::format("{} belongs to another reducer or trainer", names_[i]),
                       "two of them would take each other's gradients",
                       "destroy the other one first");
    }
  }
}

void GradientReducer::place_gradients() {
  std::vector<size_t> places;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (gradients_[i].exchanged) places.push_back(i);
  }
  buckets_ = make_buckets(
      peers_,
      parameters_,
      names_,
      places,
      {.wire = options_.wire, .caps = options_.caps, .spare = static_cast<bool>(options_.ask)});
  for (size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b];
    const bool wide = options_.wire == Dtype::kF32;
    const Tensor sums =
        wide ? bucket.values : Tensor::zeros(bucket.values.shape(), Dtype::kF32, stream_.device());
    for (size_t k = 0; k < bucket.parameters.size(); ++k) {
      const Tensor& value = parameters_[bucket.parameters[k]].value();
      Gradient& gradient = gradients_[bucket.parameters[k]];
      gradient.bucket = b;
      gradient.wire = bucket.values.slice(bucket.offsets[k], value.numel());
      gradient.sum = sums.slice(bucket.offsets[k], value.numel()).view(value.shape());
    }
    exchanges_.push_back({.missing = bucket.parameters.size(), .sums = sums, .work = nullptr});
  }
  clock_ = ExchangeClock(buckets_.size(), options_.timeline);
}

void GradientReducer::on_grad_ready(size_t parameter) {
  Tensor leaf = parameters_[parameter].grad();
  const bool is_in_place = parameters_[parameter].grad_is_in_memory();
  parameters_[parameter].set_grad({});  // so that the tape does not add the next micro-step's to it
  now_.rows = leaf.shape()[0];
  add_leaf(parameter, std::move(leaf), is_in_place);
  if (!options_.overlap) return;
  start_full_buckets();
  advance();
}

void GradientReducer::add_leaf(size_t parameter, Tensor leaf, bool is_in_place) {
  Gradient& gradient = gradients_[parameter];
  if (gradient.ready || (!is_in_place && leaf.bytes() == gradient.sum.bytes())) {
    throw InternalError(
        fmt::format(
            "{} ({}) got a second gradient in one micro-step", names_[parameter], parameter),
        "backward() ran again, or the last step's gradients were not cleared",
        "next_micro_step() between two backward() calls, Optimizer::zero_grad() before a step");
  }
  gradient.ready = true;
  if (options_.predivide != 1) kernels::scale(stream_, 1 / options_.predivide, leaf);
  if (options_.micro_steps > 1) {
    if (options_.wire != Dtype::kF32) {
      const Tensor exact = std::move(leaf);
      leaf = Tensor::empty(exact.shape(), options_.wire, stream_.device());
      kernels::cast(stream_, exact, leaf);
    }
    gradient.leaves.push(stream_, std::move(leaf));
    if (now_.micro_step + 1 < options_.micro_steps) return;
    leaf = gradient.leaves.take(stream_);
  }
  if (!is_in_place) kernels::tree_sum(stream_, leaf, gradient.wire);
  if (--exchanges_[gradient.bucket].missing == 0) {
    clock_.ready(gradient.bucket, names_[parameter]);
  }
}

// In the order of the plan, so that all ranks start them in one order.
void GradientReducer::start_full_buckets() {
  while (now_.started < buckets_.size() && exchanges_[now_.started].missing == 0)
    start(now_.started++);
}

void GradientReducer::start(size_t bucket) {
  clock_.start(bucket);
  const ExchangeClock::Exposed exposed(clock_);
  Bucket& full = buckets_[bucket];
  std::unique_ptr<Work>& work = exchanges_[bucket].work;
  if (options_.ask && bucket + 1 == buckets_.size()) {
    Tensor mine = answer(full.values);
    kernels::fill(stream_, options_.ask() ? 1 : 0, mine);
  }
  if (options_.exchange) {
    work = options_.exchange(peers_, full);
  } else if (options_.algorithm != Algorithm::kNone) {
    const AllReduce sum{
        .values = full.values, .algorithm = options_.algorithm, .label = full.label};
    work = device_ ? device_->start(sum) : peers_.start_all_reduce(sum);
  }
  if (work == nullptr) clock_.end(bucket);
}

// The place of the ranks' answers, and of their sum: the last bucket's last element.
Tensor GradientReducer::answer(const Tensor& values) const {
  return values.slice(values.numel() - 1, 1);
}

void GradientReducer::advance() {
  const ExchangeClock::Exposed exposed(clock_);
  for (size_t b = 0; b < now_.started; ++b) {
    std::unique_ptr<Work>& work = exchanges_[b].work;
    if (work == nullptr || !work->advance()) continue;
    work.reset();
    clock_.end(b);
  }
}

void GradientReducer::wait(size_t bucket) {
  Exchange& exchange = exchanges_[bucket];
  if (exchange.work == nullptr) return;
  const ExchangeClock::Exposed exposed(clock_);
  exchange.work->wait();
  exchange.work.reset();
  clock_.end(bucket);
}

void GradientReducer::next_micro_step() {
  LS_CHECK(now_.micro_step + 1 < options_.micro_steps,
           "[gradient_reducer] next_micro_step() after micro-step {} of {}",
           now_.micro_step + 1,
           options_.micro_steps);
  end_micro_step();
  ++now_.micro_step;
}

void GradientReducer::finish() {
  LS_CHECK(now_.micro_step + 1 == options_.micro_steps,
           "[gradient_reducer] finish() after micro-step {} of {}",
           now_.micro_step + 1,
           options_.micro_steps);
  end_micro_step();
  start_full_buckets();
  for (size_t b = 0; b < buckets_.size(); ++b) {
    wait(b);
    Exchange& exchange = exchanges_[b];
    if (options_.wire != Dtype::kF32) kernels::cast(stream_, buckets_[b].values, exchange.sums);
    if (options_.predivide != 1) kernels::scale(stream_, options_.predivide, exchange.sums);
    for (const size_t i : buckets_[b].parameters) parameters_[i].set_grad(gradients_[i].sum);
    exchange.missing = buckets_[b].parameters.size();
  }
  times_ = clock_.take();
  now_ = {.rows = now_.rows,
          .any_said_yes = asks() && *answer(exchanges_.back().sums).data<float>() != 0};
}

void GradientReducer::end_micro_step() {
  check_frozen();
  std::vector<size_t> missing;
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (gradients_[i].exchanged && !gradients_[i].ready) missing.push_back(i);
  }
  if (!missing.empty() && !options_.zero_unused) throw_missing(missing);
  for (const size_t i : missing) {
    Tensor zeros =
        Tensor::empty({now_.rows, parameters_[i].value().numel()}, Dtype::kF32, stream_.device());
    kernels::fill(stream_, 0, zeros);
    add_leaf(i, std::move(zeros));
  }
  for (Gradient& gradient : gradients_) gradient.ready = false;
}

void GradientReducer::check_frozen() const {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].requires_grad() == gradients_[i].required) continue;
    throw UsageError(fmt::format("{} ({}) was {} after its GradientReducer or Trainer was made",
                                 names_[i],
                                 i,
                                 gradients_[i].required ? "frozen" : "unfrozen"),
                     "buckets are planned for the parameters that required a gradient then",
                     "set_requires_grad() before, or end it and make a new one");
  }
}

void GradientReducer::throw_missing(const std::vector<size_t>& missing) const {
  std::vector<std::string> described;
  described.reserve(missing.size());
  for (const size_t i : missing) described.push_back(fmt::format("{} ({})", names_[i], i));
  const std::string when =
      options_.micro_steps == 1
          ? ""
          : fmt::format(" in micro-step {} of {}", now_.micro_step + 1, options_.micro_steps);
  const auto all = std::ranges::count_if(gradients_, &Gradient::exchanged);
  throw UsageError(fmt::format("{} of {} parameters got no gradient{}", missing.size(), all, when),
                   fmt::format("the loss does not depend on {}", first_few(described)),
                   "use them in forward(), freeze them with set_requires_grad(false) first, or let "
                   "them count as zero",
                   Remedy::kUnusedZero);
}

}  // namespace lockstep::comm
