// Optimizers, which update parameters from gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <typeinfo>
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
  double lr_factor = 1;           // the group's learning rate is the optimizer's times this
  bool may_orthogonalize = true;  // for Muon; false: it updates the group's matrices by Sgd
};

// Returns two groups: parameters with weight decay, and those of rank 1 (biases and batch-norm
// weights) without.
std::vector<ParameterGroup> without_bias_decay(std::vector<NamedParameter> parameters,
                                               double weight_decay);

// Owns its state tensors and shares the parameters. Thread safety: none.
class Optimizer {
 public:
  explicit Optimizer(std::vector<ParameterGroup> groups);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  // Discards the gradients of the last step.
  void zero_grad();
  // Call it when weights and buffers have the values with which the first step begins; it may be
  // called again before that step. Optional if the optimizer averages no buffers.
  virtual void begin(Stream& /*stream*/) {}
  // Call it after state() got the values of a run that has taken a step, before begin(). Averages
  // are then kept although no step may have been applied.
  virtual void was_restored() {}
  // Updates the parameters in place. Requires: every gradient is reduced, of its parameter's shape.
  // Parameters without a gradient are not changed; in a step that GradScaler skips none has one,
  // unless applies_control().
  virtual void step(Stream& stream) = 0;
  // Whether step() multiplies gradients by control()'s factors as it reads them, skips the steps
  // that control().state says, and writes the 16-bit copies of parameters. If not, GradClipper and
  // GradScaler change the gradients themselves, as PyTorch's do, and ops update the copies.
  virtual bool applies_control() const { return false; }
  // Call it after the run's last step.
  virtual void finish(Stream& /*stream*/) {}
  virtual void set_lr(double lr) = 0;
  // From now on step() reads the factors of gradients from the tensors of `control`. With
  // control.state, the device also decides whether a step is applied, and counts applied steps. The
  // host does not know their number then, so call set_applied_steps() before state().
  virtual void follow(const kernels::StepControl& control) { control_ = control; }
  virtual void set_applied_steps(int64_t /*steps*/) {}
  const kernels::StepControl& control() const { return control_; }
  // The gradients that are defined, in groups' order.
  std::vector<Tensor> gradients() const;
  // Replaces each gradient by its product, in f32, with the factors of `by`.
  void multiply_gradients(Stream& stream, const kernels::StepControl& by);
  // The state that a resumed run needs in addition to the parameters, such as
  // "<parameter>.momentum_buffer" of the parameter's file shape. The entries share the optimizer's
  // memory. If they are copied into the state of another optimizer of the same kind, its next steps
  // give the same bits.
  virtual std::vector<StateEntry> state() const = 0;
  // The part of state() that belongs to buffers. It differs between ranks, since not all ranks
  // update each buffer.
  virtual std::vector<StateEntry> state_of_buffers() const { return {}; }

  const std::vector<ParameterGroup>& groups() const { return groups_; }

 protected:
  // control() with this group's lr_factor.
  kernels::StepControl control_of(const ParameterGroup& group) const;
  // One tensor of zeros per parameter, in groups' order.
  std::vector<Tensor> zeros_like_parameters() const;
  // Returns what append_state() appends.
  std::vector<StateEntry> state_of(std::string_view suffix,
                                   const std::vector<Tensor>& tensors) const {
    std::vector<StateEntry> entries;
    append_state(entries, suffix, tensors);
    return entries;
  }
  // Appends "<parameter>.<suffix>" for each parameter in groups' order, with the first of
  // `tensors`.
  void append_state(std::vector<StateEntry>& entries,
                    std::string_view suffix,
                    const std::vector<Tensor>& tensors) const;
  // Returns "<buffer>.<suffix>" for each buffer, with the last of `tensors`.
  static std::vector<StateEntry> state_of(const std::vector<StateEntry>& buffers,
                                          std::string_view suffix,
                                          const std::vector<Tensor>& tensors);

 private:
  std::vector<ParameterGroup> groups_;
  kernels::StepControl control_;
};

// Source: torch.optim.SGD. Exact rule: kernels/optim/sgd.h. As in all optimizers, each group has
// its own weight decay, which replaces params.weight_decay, and its own learning rate factor.
class Sgd : public Optimizer {
 public:
  Sgd(std::vector<NamedParameter> parameters, const kernels::SgdParams& params);
  Sgd(std::vector<ParameterGroup> groups,
      const kernels::SgdParams& params,
      const std::optional<LarcParams>& larc = {});

  void step(Stream& stream) override;
  bool applies_control() const override { return typeid(*this) == typeid(Sgd); }
  void set_lr(double lr) override { params_.lr = lr; }
  std::vector<StateEntry> state() const override;

 private:
  kernels::SgdParams params_;
  std::vector<Tensor> momentum_;  // one per parameter; empty without momentum
  std::optional<Larc> larc_;
};

// Source: torch.optim.Adam, and AdamW with params.decoupled. Exact rule: kernels/optim/adam.h.
// All parameters share one step count, including those that had no gradient in some steps.
// State: "<parameter>.exp_avg", "<parameter>.exp_avg_sq", "adam.step".
class Adam : public Optimizer {
 public:
  Adam(std::vector<NamedParameter> parameters, const kernels::AdamParams& params);
  Adam(std::vector<ParameterGroup> groups, const kernels::AdamParams& params);

  void step(Stream& stream) override;
  bool applies_control() const override { return typeid(*this) == typeid(Adam); }
  void set_lr(double lr) override { params_.lr = lr; }
  void set_applied_steps(int64_t steps) override { *steps_.data<int64_t>() = steps; }
  std::vector<StateEntry> state() const override;

 protected:
  const kernels::AdamParams& params() const { return params_; }
  // Returns the number of the step that begins, from 1; 0 if the device counts steps.
  int64_t count_step();
  // One slot for each parameter of the group that has a gradient. `first`: the number of parameters
  // in the groups before.
  std::vector<kernels::AdamSlot> slots_of(const ParameterGroup& group, size_t first) const;

 private:
  kernels::AdamParams params_;
  std::vector<Tensor> exp_avg_, exp_avg_sq_;
  Tensor steps_;  // (1), i64, on the CPU
};

// Adam with a separate learning rate for each tensor with weight decay.
//   u = (exp_avg / (1 - beta1^t)) / (sqrt(exp_avg_sq / (1 - beta2^t)) + eps) + weight_decay * param
//   ratio = 1 without weight decay, and where |param| or |u| is 0; else |param| / |u|
//   param = param - lr * ratio * u
// Norms are of each tensor, as in kernels/reduce/tensor_norms.h.
// Source: timm.optim.Lamb. It also clips the norm of all gradients to 1, for which GradClipper is
// used here. You et al. 2019, "Large Batch Optimization for Deep Learning".
// State: Adam's.
class Lamb : public Adam {
 public:
  explicit Lamb(std::vector<ParameterGroup> groups,
                const kernels::AdamParams& params = {.eps = 1e-6});

  void step(Stream& stream) override;
  bool applies_control() const override { return typeid(*this) == typeid(Lamb); }

 private:
  void step_group(Stream& stream,
                  const ParameterGroup& group,
                  std::span<const kernels::AdamSlot> slots,
                  int64_t step);

  Tensor zeros_;  // f32, one per parameter of the largest group
};

struct MuonParams {
  double lr = 0.02;
  double momentum = 0.95;
  bool nesterov = true;
  Dtype products = Dtype::kF32;  // or kBF16: type of orthogonalize()'s products
};

// Updates each matrix by its orthogonalized momentum. A parameter of rank 2 or more is a matrix
// whose rows are its first extent; a convolution's weight is (K, C*R*S).
//   buf = momentum * buf + grad;  u = nesterov ? grad + momentum * buf : buf
//   x = orthogonalized(u / (|u| + 1e-7))
//   param = param * (1 - lr * weight_decay) - lr * sqrt(max(1, rows / columns)) * x
// Other parameters, and groups without may_orthogonalize, are updated by Sgd with the same learning
// rate and momentum. All arithmetic but the products is in f32. How a product is split into tasks
// depends only on the matrix's shape, so its bits do not depend on the number of threads. Each rank
// computes all products from gradients that are already summed over ranks.
// Source: Keller Jordan's Muon, github.com/KellerJordan/Muon. Its momentum is this one times 1 -
// momentum, which the division by |u| cancels. For a convolution its factor is computed from the
// filter's height and width, so it is 1 for square filters; here it is computed from the matrix.
// State: "<parameter>.momentum_buffer".
class Muon : public Optimizer {
 public:
  Muon(std::vector<ParameterGroup> groups, const MuonParams& params);

  void step(Stream& stream) override;
  bool applies_control() const override { return typeid(*this) == typeid(Muon); }
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

// Makes x (rows, columns) nearly orthogonal by five Newton-Schulz steps: its singular values come
// near 1, if they were at most 1 and not tiny. Then multiplies x by `scale`.
//   a = x x^T;  x = 3.4445 x + (-4.7750 a + 2.0315 a a) x       for rows <= columns, else x^T so
// x is f32. With products in bf16, a product's factors and result are rounded to bf16; its sums,
// and sums of matrices, stay in f32.
void orthogonalize(Stream& stream, Tensor& x, double scale, Dtype products = Dtype::kF32);

// Steps after which the fast and the slow weights are synchronized, counted from 1:
//   kAlphadl  after steps 1, k + 1, 2k + 1, ...; slow weights begin as the weights after step 1
//   kPaper    after steps k, 2k, ...; slow weights begin as the initial weights
//   kAirbench as kPaper, with the model's buffers, by an alpha that falls to the given one at the
//             last step (kernels/optim/weight_averages.h); finish() makes slow weights the model's
enum class LookaheadVariant : uint8_t { kAlphadl, kPaper, kAirbench };

struct LookaheadParams {
  int64_t k = 10;
  double alpha = 0.5;
  LookaheadVariant variant = LookaheadVariant::kAlphadl;
  int64_t total_steps = 1;  // of the run; kAirbench
};

// Base of optimizers that keep f32 averages of the parameters that `fast` updates, and of
// `buffers`, tensors that training steps change. State: that of `fast`, "<parameter or
// buffer>.<suffix>", and a step counter.
class AveragingOptimizer : public Optimizer {
 public:
  void begin(Stream& stream) override { fast_->begin(stream); }
  void was_restored() override;
  void finish(Stream& stream) override { fast_->finish(stream); }
  bool applies_control() const override { return fast_->applies_control(); }
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
  void step_fast(Stream& stream);  // not in a skipped step, if it does not see that itself
  const std::vector<StateEntry>& buffers() const { return buffers_; }
  const std::vector<Tensor>& averages() const { return averages_; }  // one for each of values()
  int64_t& counter() { return *counter_.data<int64_t>(); }
  std::vector<Tensor> values() const;      // parameters in groups' order, then buffers
  void copy_values(Stream& stream) const;  // into the averages
  bool is_restored() const { return is_restored_; }

 private:
  std::unique_ptr<Optimizer> fast_;
  std::vector<StateEntry> buffers_;
  Names names_;
  std::vector<Tensor> averages_;
  Tensor counter_;  // (1), i64, on the CPU: number of steps
  bool is_restored_ = false;
};

// Lets `fast` take k steps, then moves the slow weights by alpha toward the result and makes them
// the parameters that have a gradient. Exact rule: kernels/optim/weight_averages.h. Source: Zhang
// et al. 2019; kAlphadl: github.com/alphadl/lookahead.pytorch.
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
  int64_t alpha_decay_steps() const;  // until alpha has its final value; 0: constant
  void step_on_host(Stream& stream);
  void synchronize(Stream& stream, const kernels::LookaheadParams& how);
  bool is_frozen(const NamedParameter& parameter) const;

  LookaheadParams params_;
  bool has_slow_ = false;     // slow weights were set in this process
  bool has_stepped_ = false;  // step() was called in this process
};

// Keeps an exponential moving average of the parameters that `fast` updates, and of `buffers`, f32
// tensors that training steps change. It starts with their values before the first step. Exact
// rule: kernels/optim/weight_averages.h, where only applied steps count.
// State: that of `fast`, "<parameter or buffer>.ema", "ema.step".
class Ema : public AveragingOptimizer {
 public:
  // Requires: 0 <= decay < 1.
  Ema(std::unique_ptr<Optimizer> fast, std::vector<StateEntry> buffers, double decay);

  void step(Stream& stream) override;

  // Replaces parameters and buffers by their averages; returns the old values, for put_back().
  std::vector<Tensor> put_into_model(Stream& stream) const;
  void put_back(Stream& stream, std::span<const Tensor> values) const;

 private:
  double decay_;
  bool has_begun_ = false;  // step() was called in this process
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
