// Optimizers: they turn gradients into new parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/stream.h"
#include "kernels/optim/adam.h"
#include "kernels/optim/sgd.h"
#include "nn/larc.h"
#include "nn/module.h"

#pragma GCC visibility push(default)
namespace lockstep::kernels {
struct LookaheadParams;
}

namespace lockstep::nn {

struct ParameterGroup {
  std::vector<NamedParameter> parameters;
  double weight_decay = 0;
  double lr_factor = 1;           // its learning rate is the optimizer's times this
  bool may_orthogonalize = true;  // Muon; false: its matrices learn as the other parameters do
};

// Two groups: biases and batch norms' weights, all of rank 1, are not decayed, the others are.
std::vector<ParameterGroup> without_bias_decay(std::vector<NamedParameter> parameters,
                                               double weight_decay);

// Owns: its state tensors; shares the parameters. Thread safety: none.
class Optimizer {
 public:
  explicit Optimizer(std::vector<ParameterGroup> groups);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  // Drops the gradients of the last step.
  void zero_grad();
  // Weights and buffers are as the first step will find them, or this is called again before it.
  // Optional where no buffer counts.
  virtual void begin(Stream& /*stream*/) {}
  // Updates the parameters in place. Requires: every gradient is reduced, of its parameter's shape.
  // Parameters without a gradient are left alone.
  virtual void step(Stream& stream) = 0;
  // After the run's last step.
  virtual void finish(Stream& /*stream*/) {}
  virtual void set_lr(double lr) = 0;
  // From now on gradients are scaled, and with a state steps are applied or skipped and counted, as
  // the tensors of `control` say at the time of step(). With a state the host does not know how
  // many steps were applied: tell it before state() is asked for.
  virtual void follow(const kernels::StepControl& control) { control_ = control; }
  virtual void set_applied_steps(int64_t /*steps*/) {}
  const kernels::StepControl& control() const { return control_; }
  // The parameters' gradients, where defined, in groups' order.
  std::vector<Tensor> gradients() const;
  // State that a resumed run needs beside the parameters, sharing memory:
  // "<parameter>.momentum_buffer", of the parameter's file shape, and the like. Copied into another
  // such optimizer's state, the next steps give the same bits.
  virtual std::vector<StateEntry> state() const = 0;
  // Those tensors of it that follow buffers: ranks that do not change a buffer have others.
  virtual std::vector<StateEntry> state_of_buffers() const { return {}; }

  const std::vector<ParameterGroup>& groups() const { return groups_; }

 protected:
  // control(), for the steps of this group.
  kernels::StepControl control_of(const ParameterGroup& group) const;
  // A tensor of zeros for each parameter, in groups' order.
  std::vector<Tensor> zeros_like_parameters() const;
  // Appends "<parameter>.<suffix>" for the first tensors, one a parameter in groups' order.
  void append_state(std::vector<StateEntry>& entries,
                    std::string_view suffix,
                    const std::vector<Tensor>& tensors) const;
  // "<buffer>.<suffix>" for the last of `tensors`.
  static std::vector<StateEntry> state_of(const std::vector<StateEntry>& buffers,
                                          std::string_view suffix,
                                          const std::vector<Tensor>& tensors);

 private:
  std::vector<ParameterGroup> groups_;
  kernels::StepControl control_;
};

// Source: torch.optim.SGD. Exact rule: kernels/optim/sgd.h. Each group has its own weight decay,
// instead of params.weight_decay, and its own part of the rate, as in all optimizers.
class Sgd : public Optimizer {
 public:
  Sgd(std::vector<NamedParameter> parameters, const kernels::SgdParams& params);
  Sgd(std::vector<ParameterGroup> groups,
      const kernels::SgdParams& params,
      const std::optional<LarcParams>& larc = {});

  void step(Stream& stream) override;
  void set_lr(double lr) override { params_.lr = lr; }
  std::vector<StateEntry> state() const override;

 private:
  kernels::SgdParams params_;
  std::vector<Tensor> momentum_;  // one a parameter; empty without momentum
  std::optional<Larc> larc_;
};

// Source: torch.optim.Adam, and AdamW with params.decoupled. Exact rule: kernels/optim/adam.h.
// Steps are counted once for all parameters, also for those that had no gradient.
// State: "<parameter>.exp_avg", "<parameter>.exp_avg_sq", "adam.step".
class Adam : public Optimizer {
 public:
  Adam(std::vector<NamedParameter> parameters, const kernels::AdamParams& params);
  Adam(std::vector<ParameterGroup> groups, const kernels::AdamParams& params);

  void step(Stream& stream) override;
  void set_lr(double lr) override { params_.lr = lr; }
  void set_applied_steps(int64_t steps) override { *steps_.data<int64_t>() = steps; }
  std::vector<StateEntry> state() const override;

 protected:
  const kernels::AdamParams& params() const { return params_; }
  // The number of the step that begins, from 1; 0 where the device counts.
  int64_t count_step();
  // One for each parameter of the group that has a gradient; `first`: parameters of groups before.
  std::vector<kernels::AdamSlot> slots_of(const ParameterGroup& group, size_t first) const;

 private:
  kernels::AdamParams params_;
  std::vector<Tensor> exp_avg_, exp_avg_sq_;
  Tensor steps_;  // (1), i64, on the CPU
};

// Adam with a learning rate of its own for each tensor that is decayed.
//   u = (exp_avg / (1 - beta1^t)) / (sqrt(exp_avg_sq / (1 - beta2^t)) + eps) + weight_decay * param
//   ratio = 1 without weight decay, and where |param| or |u| is 0; else |param| / |u|
//   param = param - lr * ratio * u
// Norms are those of kernels/reduce/tensor_norms.h, each tensor's by itself.
// Source: timm.optim.Lamb, which limits the norm of all gradients to 1 first: GradClipper does that
// here. You et al. 2019, "Large Batch Optimization for Deep Learning".
// State: Adam's.
class Lamb : public Adam {
 public:
  explicit Lamb(std::vector<ParameterGroup> groups,
                const kernels::AdamParams& params = {.eps = 1e-6});

  void step(Stream& stream) override;

 private:
  void step_group(Stream& stream,
                  const ParameterGroup& group,
                  std::span<const kernels::AdamSlot> slots,
                  int64_t step);

  Tensor zeros_;  // f32, one a parameter of the greatest group
};

struct MuonParams {
  double lr = 0.02;
  double momentum = 0.95;
  bool nesterov = true;
  Dtype products = Dtype::kF32;  // or kBF16: of orthogonalize()
};

// Moves each matrix by its momentum made orthogonal. A parameter of rank 2 or more is a matrix of
// (first extent) rows, a convolution's of (K, C*R*S).
//   buf = momentum * buf + grad;  u = nesterov ? grad + momentum * buf : buf
//   x = orthogonalized(u / (|u| + 1e-7))
//   param = param * (1 - lr * weight_decay) - lr * sqrt(max(1, rows / columns)) * x
// Other parameters, and groups that may not orthogonalize, learn by Sgd with the same rate and
// momentum. All but `products` is in f32. A matrix's products are cut by its shape alone, so their
// bits depend on no number of ranks or threads; each rank computes them from gradients that are
// summed already.
// Source: Keller Jordan's Muon, github.com/KellerJordan/Muon. Its momentum is this one times
// 1 - momentum, which the division by |u| undoes. Its factor of a convolution is that of the
// filter's sides, which is 1 where they are equal; here it is that of the matrix.
// State: "<parameter>.momentum_buffer".
class Muon : public Optimizer {
 public:
  Muon(std::vector<ParameterGroup> groups, const MuonParams& params);

  void step(Stream& stream) override;
  void set_lr(double lr) override;
  void follow(const kernels::StepControl& control) override;
  std::vector<StateEntry> state() const override;

 private:
  void step_matrix(Stream& stream, size_t matrix, const ParameterGroup& group, const Var& var);

  MuonParams params_;
  std::vector<ParameterGroup> matrices_;
  Sgd rest_;
  std::vector<Tensor> momentum_;  // of the matrices, in groups' order
  Tensor one_;                    // (1), f32: 1
};

// Five steps of Newton and Schulz's iteration, after which the singular values of x (rows, columns)
// are near 1, if they were at most 1 and not tiny; x is multiplied by `scale` then.
//   a = x x^T;  x = 3.4445 x + (-4.7750 a + 2.0315 a a) x       for rows <= columns, else x^T so
// x is f32. Of a product in bf16 both factors and the result are rounded; its sums, and the sums of
// matrices, stay in f32.
void orthogonalize(Stream& stream, Tensor& x, double scale, Dtype products = Dtype::kF32);

// Steps after which the fast and the slow weights are synchronized, counted from 1:
//   kAlphadl  after steps 1, k + 1, 2k + 1, ...; slow weights begin as the weights after step 1
//   kPaper    after steps k, 2k, ...; slow weights begin as the initial weights
//   kAirbench likewise, with the model's buffers, by an alpha that falls to the given one at the
//             last step (kernels/optim/weight_averages.h); finish() makes slow weights the model's
enum class LookaheadVariant : uint8_t { kAlphadl, kPaper, kAirbench };

struct LookaheadParams {
  int64_t k = 10;
  double alpha = 0.5;
  LookaheadVariant variant = LookaheadVariant::kAlphadl;
  int64_t total_steps = 1;  // of the run; kAirbench
};

// Beside an optimizer, f32 averages of its parameters and of `buffers`, tensors that training steps
// change. State: that of `fast`, "<parameter or buffer>.<suffix>", and the counter of steps.
class AveragingOptimizer : public Optimizer {
 public:
  void begin(Stream& stream) override { fast_->begin(stream); }
  void finish(Stream& stream) override { fast_->finish(stream); }
  void set_lr(double lr) override { fast_->set_lr(lr); }
  void follow(const kernels::StepControl& control) override;
  void set_applied_steps(int64_t steps) override;
  std::vector<StateEntry> state() const override;
  std::vector<StateEntry> state_of_buffers() const override;

 protected:
  struct Names {
    std::string_view suffix;
    std::string_view counter;
  };
  AveragingOptimizer(std::unique_ptr<Optimizer> fast,
                     std::vector<StateEntry> buffers,
                     const Names& names);

  Optimizer& fast() { return *fast_; }
  const std::vector<StateEntry>& buffers() const { return buffers_; }
  const std::vector<Tensor>& averages() const { return averages_; }  // of values()
  int64_t& counter() { return *counter_.data<int64_t>(); }
  std::vector<Tensor> values() const;      // parameters in groups' order, then buffers
  void copy_values(Stream& stream) const;  // into the averages

 private:
  std::unique_ptr<Optimizer> fast_;
  std::vector<StateEntry> buffers_;
  Names names_;
  std::vector<Tensor> averages_;
  Tensor counter_;  // (1), i64, on the CPU: steps taken
};

// Lets `fast` take k steps, then moves the slow weights by alpha toward the result and makes them
// the parameters. Exact rule: kernels/optim/weight_averages.h. Source: Zhang et al. 2019; kAlphadl:
// github.com/alphadl/lookahead.pytorch.
// State: that of `fast`, "<parameter or buffer>.slow", "lookahead.counter".
class Lookahead : public AveragingOptimizer {
 public:
  // `buffers`: for kAirbench, f32 tensors that training steps change. Requires: params.k >= 1,
  // params.total_steps >= 1.
  Lookahead(std::unique_ptr<Optimizer> fast,
            const LookaheadParams& params,
            std::vector<StateEntry> buffers = {});

  void begin(Stream& stream) override;
  void step(Stream& stream) override;
  void finish(Stream& stream) override;

 private:
  bool from_initial_weights() const { return params_.variant != LookaheadVariant::kAlphadl; }
  bool synchronizes_after(int64_t step) const;
  int64_t falls_over() const;  // steps, in which alpha does; 0: it stays
  void step_on_host(Stream& stream);
  void synchronize(Stream& stream, const kernels::LookaheadParams& how);

  LookaheadParams params_;
  bool has_slow_ = false;     // of this process's making
  bool has_stepped_ = false;  // in this process
};

// Keeps a moving average of the parameters that `fast` updates, and of `buffers`, f32 tensors that
// training steps change. It begins as they are before the first step. Exact rule:
// kernels/optim/weight_averages.h, each applied step one of its steps.
// State: that of `fast`, "<parameter or buffer>.ema", "ema.step".
class Ema : public AveragingOptimizer {
 public:
  // Requires: 0 <= decay < 1.
  Ema(std::unique_ptr<Optimizer> fast, std::vector<StateEntry> buffers, double decay);

  void step(Stream& stream) override;

  // Copies the average over parameters and buffers; returns what they were, for put_back().
  std::vector<Tensor> put_into_model(Stream& stream) const;
  void put_back(Stream& stream, std::span<const Tensor> values) const;

 private:
  double decay_;
  bool has_begun_ = false;  // in this process
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
