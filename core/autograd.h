// The tape: values that remember how they were made, and backward().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/shards.h"
#include "core/stream.h"
#include "core/tensor.h"

#pragma GCC visibility push(default)
namespace lockstep {

// dst += src, element by element. Lent by the layer above, since core has no kernels.
using AccumulateFn = void(Stream& stream, const Tensor& src, Tensor& dst);
// Every element of out = value. Lent likewise.
using FillFn = void(Stream& stream, double value, Tensor& out);

// The types that a network computes with. An op's result has the type of its input.
struct Precision {
  Dtype images = Dtype::kF32;  // of the network's input
  // Set: matrix products and convolutions take their input in this 16-bit type, norms in f32.
  std::optional<Dtype> autocast = {};
};

// Keys of the random draws of a training step.
struct Draws {
  uint64_t seed = 0;  // of the run
  // (N) i64 on the stream's device: each image's number in the run, such as epoch * images of the
  // data set + place in it. Undefined: nothing may be drawn.
  Tensor images;
};

class TapeListener;

// The properties that all activations of one micro-step share. Lives as long as any of them.
struct Batch {
  Stream* stream = nullptr;
  Shards shards;
  Precision precision;
  bool recording = false;  // false: evaluation, nothing is kept for backward()
  AccumulateFn* accumulate = nullptr;
  FillFn* fill = nullptr;  // needed on CUDA
  Draws draws;
  TapeListener* listener = nullptr;  // outlives the batch; null: none

  // A listener wants to see each op's result and gradients.
  bool is_watched() const;
};

class Grads;
struct Node;

// grad_out is the op's own: it may be changed in place, and given to an input.
using BackwardFn = std::function<void(Stream& stream, Tensor& grad_out, Grads& grads)>;
// Computes the value of an op once more, to the same bits.
using RemakeFn = std::function<Tensor(Stream& stream)>;

// A tensor on the tape; copies share one identity.
//
// Gradients of activations have the activation's shape. Gradients of parameters are sums over the
// batch and stay cut until the reducer joins them: grad() is (local shards, numel), one leaf of
// core/tree.h per shard. Thread safety: none.
class Var {
 public:
  Var() = default;
  // A leaf: a parameter when requires_grad, a constant otherwise.
  explicit Var(Tensor value, bool requires_grad = false);
  // The root of a micro-step: input images or features, rows as batch->shards says.
  Var(Tensor value, std::shared_ptr<const Batch> batch);

  bool defined() const { return state_ != nullptr; }
  // Errors: InternalError when it was forgotten for good.
  const Tensor& value() const;
  const Shape& shape() const;
  Dtype dtype() const;
  // Where only backward() will ask for the value: on a CPU frees it, and value() makes it again,
  // memory for time. A GPU has the memory, and keeps it. Only for results of ops that can remake
  // them, unless nothing is recorded: then the value is gone.
  void forget();
  bool requires_grad() const;
  void set_requires_grad(bool requires_grad);  // leaves only

  // A parameter's value in a 16-bit type, for ops whose input has it. Undefined: none. Code
  // that changes the value changes it too.
  const Tensor& copy() const;
  void set_copy(Tensor copy);
  // The value or the copy, whichever is of this type. Errors: DtypeError for neither.
  const Tensor& as(Dtype dtype) const;

  // Undefined until backward() has reached this leaf. A second backward() adds to it; set_grad({})
  // starts over.
  const Tensor& grad() const;
  void set_grad(Tensor grad);
  // Sets where backward() writes the gradient of a parameter that is used once, while it has one
  // leaf: (numel) f32, overwritten by each backward() that finds no gradient. Undefined: memory of
  // its own.
  void set_grad_memory(Tensor memory);
  // True when grad() is a leaf there. False for what set_grad() put there.
  bool grad_is_in_memory() const;
  // Called during backward() as soon as this leaf's gradient is complete, in the order that
  // backward() finishes leaves. One hook a leaf; an empty function removes it.
  void on_grad_ready(std::function<void(Var&)> hook);

  const Batch& batch() const;  // Errors: InternalError for leaves
  const std::shared_ptr<const Batch>& shared_batch() const;
  Stream& stream() const { return *batch().stream; }
  const Shards& shards() const { return batch().shards; }

  // Runs the tape from this value, which must be the loss leaves (local shards), and frees it.
  // `seed`: the leaves' own gradients, f32; ones unless defined. Leaves that the loss does not
  // depend on keep an undefined gradient.
  void backward(Tensor seed = {});

  bool same_as(const Var& other) const { return state_ == other.state_; }
  // An address that copies share. Others do not have it as long as one of them lives.
  const void* identity() const { return state_.get(); }

 private:
  struct State;
  struct Value;
  friend class Grads;
  friend Var record(std::string_view, Tensor, std::vector<Var>, BackwardFn, RemakeFn);
  friend struct Node;

  std::shared_ptr<State> state_;
  std::shared_ptr<Value> value_;  // null in the tape's own links
};

// Receives the results of a node's backward function.
class Grads {
 public:
  // False when input i needs no gradient: skip the work.
  bool wants(size_t i) const;
  // Memory for the gradient of input i, to be overwritten; the tape adds it up when the input has
  // several consumers. Shape: the input's, or (local shards, numel) for a parameter. Requires:
  // wants(i), once per i.
  Tensor& overwrite(size_t i);
  // Hands over memory that is there already: `grad` becomes the gradient of input i. Do not use it
  // again, nor give it to another input: later gradients may be added to it.
  void give(size_t i, Tensor grad);

 private:
  friend class Var;
  explicit Grads(Node& node);
  Shape missing_shape(size_t i) const;
  void deliver();
  void add(size_t i, Tensor& sum) const;

  Node& node_;
  std::vector<Tensor> tensors_;
};

// Puts `out`, computed from `inputs`, on the tape. At least one input must carry a batch; the
// result carries the same. When the batch is not recording or no input requires a gradient,
// `backward` is dropped. The tape itself keeps no activation: what `backward` needs, it captures,
// as a Tensor or as a Var that may be forgotten. `remake` makes the result forgettable.
Var record(std::string_view name,
           Tensor out,
           std::vector<Var> inputs,
           BackwardFn backward,
           RemakeFn remake = nullptr);

// An op on the tape.
struct TapeOp {
  std::string_view name;
  uint64_t number = 0;  // its own; the same when its gradient is computed
  std::span<const Var> inputs;
};

// The interface of objects that see each tensor on the tape, such as a black box. A batch carries
// one. Calls come in the order of the ops, which is the same on every rank.
class TapeListener {
 public:
  TapeListener() = default;
  TapeListener(const TapeListener&) = delete;
  TapeListener& operator=(const TapeListener&) = delete;
  virtual ~TapeListener() = default;

  // Whether it looks at tensors. Ops that compute several things at once then keep them apart.
  virtual bool reads_tensors() const { return true; }
  // An op has computed its result; only while the batch is recording.
  virtual void on_result(const TapeOp& op, const Tensor& result) = 0;
  // backward() has computed the gradient of the op's input `i`, and added it to what other
  // consumers of that input gave. It may be changed. Shapes: Var.
  virtual void on_gradient(const TapeOp& op, size_t i, Tensor& gradient) = 0;
};

inline bool Batch::is_watched() const {
  return listener != nullptr && listener->reads_tensors();
}

}  // namespace lockstep
#pragma GCC visibility pop
