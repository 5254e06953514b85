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

// dst += src, element by element. The layer above supplies it, since core has no kernels.
using AccumulateFn = void(Stream& stream, const Tensor& src, Tensor& dst);
// Sets every element of out to value. Supplied the same way.
using FillFn = void(Stream& stream, double value, Tensor& out);

// The element types that a network computes with. An op's result has the type of its input.
struct Precision {
  Dtype images = Dtype::kF32;  // type of the network's input
  // Set: matrix products and convolutions take their input in this 16-bit type, norms in f32.
  std::optional<Dtype> autocast = {};
};

// Keys of the random draws of a training step.
struct Draws {
  uint64_t seed = 0;  // the run's
  // (N) i64 on the stream's device: each image's number in the run, such as epoch * data set size +
  // index in the data set. Undefined: ops that draw random numbers must not be called.
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

  // True when a listener reads each op's result and gradients.
  bool is_watched() const;
};

class Grads;
struct Node;

// The function owns grad_out: it may change it in place, or pass it to an input with Grads::give().
using BackwardFn = std::function<void(Stream& stream, Tensor& grad_out, Grads& grads)>;
// Computes the result of an op again, with the same bits.
using RemakeFn = std::function<Tensor(Stream& stream)>;

// A tensor on the tape; copies share one identity.
//
// The gradient of an activation has the activation's shape. The gradient of a parameter is a sum
// over the batch, which is kept apart by shard until the reducer adds the shards up: grad() is
// (local shards, numel), where each row is a leaf of core/tree.h's sum. Thread safety: none.
class Var {
 public:
  Var() = default;
  // A leaf: a parameter when requires_grad, a constant otherwise.
  explicit Var(Tensor value, bool requires_grad = false);
  // The root of a micro-step: input images or features, whose rows are laid out as batch->shards
  // says.
  Var(Tensor value, std::shared_ptr<const Batch> batch);

  bool defined() const { return state_ != nullptr; }
  // Errors: InternalError when it was forgotten and cannot be computed again.
  const Tensor& value() const;
  const Shape& shape() const;
  Dtype dtype() const;
  // Trades time for memory where only backward() will need the value: on the CPU frees it, and
  // value() computes it again. On a GPU the value is kept, since memory is not short there.
  // Requires: the op can remake its result, or nothing is recorded; in the latter case the value is
  // lost.
  void forget();
  bool requires_grad() const;
  void set_requires_grad(bool requires_grad);  // leaves only

  // A copy of a parameter's value in a 16-bit type, for ops whose input has that type. Undefined:
  // none. Code that changes the value must update the copy.
  const Tensor& copy() const;
  void set_copy(Tensor copy);
  // From now on ops write the copy again before they read it, for code that changes only the value.
  void derive_copy();
  bool has_derived_copy() const;
  // The value or the copy, whichever has this type. Errors: DtypeError when neither has.
  const Tensor& as(Dtype dtype) const;

  // Undefined until backward() has reached this leaf. A second backward() adds to it; set_grad({})
  // starts over.
  const Tensor& grad() const;
  void set_grad(Tensor grad);
  // Sets the memory, (numel) f32, in which backward() puts the gradient of a parameter that has one
  // local shard and is used once. Each backward() that finds no gradient overwrites it. Undefined:
  // backward() allocates memory.
  void set_grad_memory(Tensor memory);
  // True when backward() put grad() into that memory; false after set_grad().
  bool grad_is_in_memory() const;
  // Called during backward() as soon as this leaf's gradient is complete, in the order that
  // backward() finishes leaves. A leaf has at most one hook; an empty function removes it.
  void on_grad_ready(std::function<void(Var&)> hook);
  bool has_grad_hook() const;

  const Batch& batch() const;  // Errors: InternalError for leaves
  const std::shared_ptr<const Batch>& shared_batch() const;
  Stream& stream() const { return *batch().stream; }
  const Shards& shards() const { return batch().shards; }

  // Runs the tape backward from this value, which must be the loss per shard (local shards), and
  // frees the tape. `seed`: the gradient of this value, f32; ones if undefined. Its memory is taken
  // over and may be overwritten, so each call needs its own. Parameters that the loss does not
  // depend on keep an undefined gradient.
  void backward(Tensor seed = {});

  bool same_as(const Var& other) const { return state_ == other.state_; }
  // An address that all copies share. It is unique as long as one of them lives.
  const void* identity() const { return state_.get(); }

 private:
  struct State;
  struct Value;
  friend class Grads;
  friend Var record(std::string_view, Tensor, std::vector<Var>, BackwardFn, RemakeFn);
  friend struct Node;

  std::shared_ptr<State> state_;
  std::shared_ptr<Value> value_;  // null in the inputs of a Node, which keep no activation alive
};

// Receives the results of a node's backward function.
class Grads {
 public:
  // False when input i needs no gradient: skip the work.
  bool wants(size_t i) const;
  // Uninitialized memory for the gradient of input i; the tape sums the gradients of an input that
  // has several consumers. Shape: the input's, or (local shards, numel) for a parameter. Requires:
  // wants(i), once per i.
  Tensor& overwrite(size_t i);
  // Makes the existing tensor `grad` the gradient of input i. The caller must not use it again or
  // give it to another input, since later gradients may be added to it. Shape and dtype: as
  // overwrite()'s. Errors: ShapeError, DtypeError.
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
// `backward` is dropped. The tape itself keeps no activation: `backward` captures what it needs, as
// a Tensor or as a Var that may be forgotten. With `remake`, Var::forget() may be called on the
// result.
Var record(std::string_view name,
           Tensor out,
           std::vector<Var> inputs,
           BackwardFn backward,
           RemakeFn remake = nullptr);

// An op on the tape.
struct TapeOp {
  std::string_view name;
  uint64_t number = 0;  // unique; the same in the forward and the backward pass
  std::span<const Var> inputs;
};

// An observer of all tensors on the tape, such as engine/observe/black_box.h. A batch refers to at
// most one. Calls come in the order of the ops, which is the same on every rank.
class TapeListener {
 public:
  TapeListener() = default;
  TapeListener(const TapeListener&) = delete;
  TapeListener& operator=(const TapeListener&) = delete;
  virtual ~TapeListener() = default;

  // Tells whether the listener reads tensors. If so, ops are not fused, so that it sees each
  // result.
  virtual bool reads_tensors() const { return true; }
  // An op has computed its result; only while the batch is recording.
  virtual void on_result(const TapeOp& op, const Tensor& result) = 0;
  // backward() has computed the gradient of the op's input `i`, and added it to the gradients from
  // other consumers of that input. The listener may change it. Shapes: as of Var's gradients.
  virtual void on_gradient(const TapeOp& op, size_t i, Tensor& gradient) = 0;
};

inline bool Batch::is_watched() const {
  return listener != nullptr && listener->reads_tensors();
}

}  // namespace lockstep
#pragma GCC visibility pop
