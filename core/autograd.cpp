#include "core/autograd.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>

#include "core/check.h"

namespace lockstep {

struct Var::State {
  Shape shape{0};
  Dtype dtype = Dtype::kF32;
  Tensor grad;
  Tensor grad_memory;
  bool grad_is_in_memory = false;
  bool requires_grad = false;
  std::function<void(Var&)> grad_ready;
  std::shared_ptr<const Batch> batch;
  std::shared_ptr<Node> node;  // null for leaves
};

// Separate from State, so that the value is freed when no Var outside of the tape refers to it.
struct Var::Value {
  Tensor tensor;  // undefined while forgotten
  RemakeFn remake;
  Tensor copy;
  bool copy_is_derived = false;
};

// One recorded op. Owns the references to its inputs and what its backward function captured, until
// that function has run.
struct Node {
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() { release_inputs(); }

  std::string_view name;
  uint64_t sequence = 0;  // creation order; an op is always newer than its inputs
  std::vector<Var> inputs;
  BackwardFn backward;
  std::shared_ptr<const Batch> batch;
  Tensor grad_out;
  std::shared_ptr<Node> next;  // while it is released

  TapeOp op() const { return {.name = name, .number = sequence, .inputs = inputs}; }
  Var::State& state(size_t i) const { return *inputs[i].state_; }

 private:
  // Drops inputs and what backward captured. Puts the nodes that nothing else refers to in front of
  // `rest`.
  void drop(std::shared_ptr<Node>& rest) {
    backward = nullptr;  // it may hold inputs, which `inputs` keeps alive until they are looked at
    for (Var& input : inputs) {
      if (input.state_.use_count() == 1 && input.state_->node != nullptr) {
        std::shared_ptr<Node> node = std::move(input.state_->node);
        node->next = std::move(rest);
        rest = std::move(node);
      }
      input.state_.reset();
    }
    inputs.clear();
  }
  // Without calling itself: a tape may be longer than the stack is deep. Without allocating: memory
  // may have run out.
  void release_inputs() {
    std::shared_ptr<Node> rest;
    drop(rest);
    while (rest != nullptr) {
      const std::shared_ptr<Node> node = std::move(rest);
      rest = std::move(node->next);
      if (node.use_count() == 1) node->drop(rest);
    }
  }
};

namespace {

uint64_t next_sequence() {
  static std::atomic<uint64_t> sequence = 0;
  return ++sequence;
}

Tensor ones(const Batch& batch, const Shape& shape) {
  Tensor seed = Tensor::empty(shape, Dtype::kF32, batch.stream->device());
  if (seed.device() == Device::kCpu) {
    std::ranges::fill(seed.span<float>(), 1.0F);
  } else if (seed.device() == Device::kCuda) {
    LS_CHECK(batch.fill != nullptr, "[backward] the batch lends no fill");
    batch.fill(*batch.stream, 1, seed);
  }
  return seed;
}

}  // namespace

Var::Var(Tensor value, bool requires_grad)
    : state_(std::make_shared<State>()), value_(std::make_shared<Value>()) {
  state_->shape = value.shape();
  state_->dtype = value.dtype();
  state_->requires_grad = requires_grad;
  value_->tensor = std::move(value);
}

Var::Var(Tensor value, std::shared_ptr<const Batch> batch) : Var(std::move(value)) {
  LS_CHECK(batch != nullptr && batch->stream != nullptr, "[var] batch: got none");
  state_->batch = std::move(batch);
}

const Tensor& Var::value() const {
  LS_CHECK(value_ != nullptr, "[var] value of an empty Var");
  Tensor& tensor = value_->tensor;
  if (!tensor.defined() && value_->remake != nullptr) tensor = value_->remake(stream());
  LS_CHECK(tensor.defined(), "[var] value: it was forgotten");
  return tensor;
}

const Tensor& Var::copy() const {
  return value_->copy;
}
void Var::set_copy(Tensor copy) {
  LS_CHECK(copy.shape() == shape(),
           "[var] copy: shape {}, expected {}",
           to_string(copy.shape()),
           to_string(shape()));
  value_->copy = std::move(copy);
}
void Var::derive_copy() {
  value_->copy_is_derived = true;
}
bool Var::has_derived_copy() const {
  return value_->copy_is_derived && value_->copy.defined();
}

const Tensor& Var::as(Dtype dtype) const {
  if (value().dtype() == dtype) return value();
  if (value_->copy.defined() && value_->copy.dtype() == dtype) return value_->copy;
  throw DtypeError(fmt::format("[var] a parameter of {} is wanted as {}, and has no such copy",
                               name_of(value().dtype()),
                               name_of(dtype)),
                   "an input of another type than the network's parameters were made for",
                   "such a copy by Var::set_copy() first");
}

const Shape& Var::shape() const {
  LS_CHECK(defined(), "[var] shape of an empty Var");
  return state_->shape;
}

Dtype Var::dtype() const {
  LS_CHECK(defined(), "[var] dtype of an empty Var");
  return state_->dtype;
}

void Var::forget() {
  LS_CHECK(!batch().recording || value_->remake != nullptr,
           "[var] forget: the value cannot be made again");
  if (batch().recording && stream().device() != Device::kCpu) return;
  value_->tensor = Tensor();
}

bool Var::requires_grad() const {
  return defined() && state_->requires_grad;
}

void Var::set_requires_grad(bool requires_grad) {
  LS_CHECK(state_->node == nullptr, "[var] set_requires_grad on the result of an op");
  state_->requires_grad = requires_grad;
}

const Tensor& Var::grad() const {
  return state_->grad;
}
void Var::set_grad(Tensor grad) {
  state_->grad = std::move(grad);
  state_->grad_is_in_memory = false;
}
void Var::set_grad_memory(Tensor memory) {
  LS_CHECK(!memory.defined() ||
               (memory.shape() == Shape{shape().numel()} && memory.dtype() == Dtype::kF32),
           "[var] memory of the gradient: shape {}, expected ({},) of f32",
           to_string(memory.shape()),
           shape().numel());
  state_->grad_memory = std::move(memory);
}
bool Var::grad_is_in_memory() const {
  return state_->grad_is_in_memory;
}
void Var::on_grad_ready(std::function<void(Var&)> hook) {
  state_->grad_ready = std::move(hook);
}
bool Var::has_grad_hook() const {
  return state_->grad_ready != nullptr;
}

const std::shared_ptr<const Batch>& Var::shared_batch() const {
  return state_->batch;
}

const Batch& Var::batch() const {
  LS_CHECK(defined() && state_->batch != nullptr, "[var] batch of a Var that belongs to none");
  return *state_->batch;
}

Grads::Grads(Node& node) : node_(node), tensors_(node.inputs.size()) {}

bool Grads::wants(size_t i) const {
  return node_.inputs[i].requires_grad();
}

Tensor& Grads::overwrite(size_t i) {
  const Shape shape = missing_shape(i);
  Var::State& input = node_.state(i);
  if (input.grad_memory.defined() && shape[0] == 1 && !input.grad.defined() &&
      !input.grad_is_in_memory) {
    input.grad_is_in_memory = true;
    tensors_[i] = input.grad_memory.view(shape);
  } else {
    tensors_[i] = Tensor::empty(shape, input.dtype, node_.batch->stream->device());
  }
  return tensors_[i];
}

void Grads::give(size_t i, Tensor grad) {
  const Shape shape = missing_shape(i);
  const Dtype dtype = node_.state(i).dtype;
  if (grad.shape() != shape) {
    throw ShapeError(fmt::format("[{}] gradient {}: shape {}, expected {}",
                                 node_.name,
                                 i,
                                 to_string(grad.shape()),
                                 to_string(shape)),
                     "the op's backward function gave it",
                     "the input's shape, or (local shards, elements) for a parameter");
  }
  if (grad.dtype() != dtype) {
    throw DtypeError(fmt::format("[{}] gradient {}: {}, expected {}",
                                 node_.name,
                                 i,
                                 name_of(grad.dtype()),
                                 name_of(dtype)),
                     "the op's backward function gave it",
                     "a gradient of the input's type");
  }
  tensors_[i] = std::move(grad);
}

Shape Grads::missing_shape(size_t i) const {
  LS_CHECK(wants(i) && !tensors_[i].defined(),
           "[{}] gradient {}: not wanted or given twice",
           node_.name,
           i);
  const Var::State& input = node_.state(i);
  const bool parameter = input.batch == nullptr;
  return parameter ? Shape{node_.batch->shards.local(), input.shape.numel()} : input.shape;
}

void Grads::deliver() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const std::shared_ptr<Var::State>& input = node_.inputs[i].state_;
    if (input == nullptr || !input->requires_grad) continue;
    LS_CHECK(tensors_[i].defined(), "[{}] gradient {} was not written", node_.name, i);
    Tensor& sum = input->node != nullptr ? input->node->grad_out : input->grad;
    if (sum.defined()) {
      add(i, sum);
    } else {
      sum = std::move(tensors_[i]);
    }
    if (node_.batch->listener != nullptr) node_.batch->listener->on_gradient(node_.op(), i, sum);
  }
}

void Grads::add(size_t i, Tensor& sum) const {
  const Tensor& grad = tensors_[i];
  if (sum.shape() != grad.shape()) {
    throw ShapeError(fmt::format("[{}] gradient {}: shape {}, but {} is there already",
                                 node_.name,
                                 i,
                                 to_string(grad.shape()),
                                 to_string(sum.shape())),
                     "a reduced gradient of the last step was not cleared",
                     "call Optimizer::zero_grad() before backward()");
  }
  LS_CHECK(node_.batch->accumulate != nullptr, "[{}] the batch lends no accumulate", node_.name);
  node_.batch->accumulate(*node_.batch->stream, grad, sum);
}

void Var::backward(Tensor seed) {
  LS_CHECK(defined() && state_->node != nullptr, "[backward] nothing was recorded for this value");
  // Collect the nodes below, and how often each leaf will receive a gradient.
  std::unordered_map<State*, int> deliveries;
  std::unordered_set<Node*> seen = {state_->node.get()};
  std::vector<std::shared_ptr<Node>> nodes = {state_->node};
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const Var& input : nodes[i]->inputs) {
      if (!input.requires_grad()) continue;
      const std::shared_ptr<Node>& producer = input.state_->node;
      if (producer == nullptr) {
        ++deliveries[input.state_.get()];
      } else if (seen.insert(producer.get()).second) {
        nodes.push_back(producer);
      }
    }
  }
  // Newest first: an op is newer than its inputs, so the gradient of each node is complete when its
  // turn comes.
  std::ranges::sort(nodes, std::greater{}, [](const auto& node) { return node->sequence; });

  state_->node->grad_out = seed.defined() ? std::move(seed) : ones(batch(), shape());

  for (std::shared_ptr<Node>& node : nodes) {
    LS_CHECK(node->backward != nullptr, "[{}] backward() ran through this op before", node->name);
    Grads grads(*node);
    node->backward(*node->batch->stream, node->grad_out, grads);
    grads.deliver();
    // Free what was saved for this node now, since gradients are taking up more and more memory.
    node->grad_out = Tensor();
    node->backward = nullptr;
    for (Var& input : std::exchange(node->inputs, {})) {
      const auto leaf = deliveries.find(input.state_.get());
      if (leaf == deliveries.end() || --leaf->second > 0) continue;
      if (const auto hook = input.state_->grad_ready) hook(input);
    }
    node.reset();
  }
}

Var record(std::string_view name,
           Tensor out,
           std::vector<Var> inputs,
           BackwardFn backward,
           RemakeFn remake) {
  const auto carrier =
      std::ranges::find_if(inputs, [](const Var& v) { return v.shared_batch() != nullptr; });
  LS_CHECK(carrier != inputs.end(), "[{}] no input belongs to a batch", name);
  Var result(std::move(out), carrier->shared_batch());
  const Batch& batch = result.batch();
  if (!batch.recording) return result;
  result.value_->remake = std::move(remake);
  const uint64_t number = next_sequence();
  if (batch.listener != nullptr) {
    batch.listener->on_result({.name = name, .number = number, .inputs = inputs}, result.value());
  }
  if (std::ranges::none_of(inputs, [](const Var& v) { return v.requires_grad(); })) return result;
  for (Var& input : inputs) {
    if (input.defined() && input.state_->node != nullptr) input.value_ = nullptr;
  }
  auto node = std::make_shared<Node>();
  node->name = name;
  node->sequence = number;
  node->inputs = std::move(inputs);
  node->backward = std::move(backward);
  node->batch = result.shared_batch();
  result.state_->node = std::move(node);
  result.state_->requires_grad = true;
  return result;
}

}  // namespace lockstep
