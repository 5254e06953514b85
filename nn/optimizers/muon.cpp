#include <algorithm>
#include <cmath>
#include <utility>

#include "core/transfer.h"
#include "kernels/elementwise/copy.h"
#include "kernels/elementwise/fill.h"
#include "kernels/linear/linear.h"
#include "kernels/optim/gradient_factors.h"
#include "kernels/reduce/tensor_norms.h"
#include "nn/optimizer.h"

// All arithmetic but the matrix products is done by SGD steps (kernels/optim/sgd.h).

namespace lockstep::nn {
namespace {

bool is_matrix(const ParameterGroup& group, const NamedParameter& parameter) {
  return group.may_orthogonalize && parameter.file_shape.rank() >= 2 &&
         parameter.var.value().numel() > 0;
}

// The groups, reduced to parameters that are matrices, or to those that are not.
std::vector<ParameterGroup> groups_of(const std::vector<ParameterGroup>& groups, bool matrices) {
  std::vector<ParameterGroup> kept;
  for (ParameterGroup group : groups) {
    std::erase_if(group.parameters, [&](const NamedParameter& parameter) {
      return is_matrix(group, parameter) != matrices;
    });
    if (!group.parameters.empty()) kept.push_back(std::move(group));
  }
  return kept;
}

Tensor zeros(Stream& stream, const Shape& shape) {
  Tensor tensor = Tensor::empty(shape, Dtype::kF32, stream.device());
  kernels::fill(stream, 0, tensor);
  return tensor;
}

// `x` itself, or a copy rounded to `dtype`.
Tensor converted(Stream& stream, const Tensor& x, Dtype dtype) {
  if (x.dtype() == dtype) return x;
  Tensor copy = Tensor::empty(x.shape(), dtype, stream.device());
  kernels::cast(stream, x, copy);
  return copy;
}

struct Matrix {
  Tensor value;   // f32
  Tensor factor;  // in the type of products; the same tensor as `value` if that is f32
};

// x = p x + q y.
void combine(Stream& stream, double p, Matrix& x, double q, const Tensor& y) {
  kernels::SgdSlot slot = {.param = x.value, .grad = y, .momentum = {}};
  if (x.factor.dtype() != Dtype::kF32) slot.copy = x.factor;
  kernels::sgd_step(
      stream, {&slot, 1}, {.lr = -q, .weight_decay = static_cast<float>((p - 1) / q)});
}

// On the CPU, threads share the rows of a product. The cut must not depend on the number of
// threads.
Shards rows_of(Stream& stream, int64_t rows) {
  constexpr int64_t kParts = 4;
  if (stream.device() == Device::kCuda) return Shards::single(rows);
  return Shards::cut(rows, std::min(rows, kParts), 1);
}

// x x^T, or x^T x where that is smaller.
Matrix gram(Stream& stream, const Tensor& x) {
  const int64_t rows = x.shape()[0];
  const int64_t side = std::min(rows, x.shape()[1]);
  const bool is_wide = rows == side;
  const Dtype dtype = is_wide ? x.dtype() : Dtype::kF32;
  Tensor result = Tensor::empty({side, side}, dtype, stream.device());
  if (is_wide) {
    kernels::linear_forward(stream, rows_of(stream, rows), x, x, {}, result);
  } else {
    Tensor leaf = result.view({1, side * side});
    Tensor none;
    kernels::linear_backward_weight(stream, Shards::single(rows), x, x, leaf, none);
    result = converted(stream, result, x.dtype());
  }
  return {.value = converted(stream, result, Dtype::kF32), .factor = result};
}

}  // namespace

void orthogonalize(Stream& stream, Tensor& value, double scale, Dtype products) {
  constexpr int kSteps = 5;
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  const int64_t rows = value.shape()[0];
  const bool is_wide = rows <= value.shape()[1];
  Matrix x = {.value = value, .factor = converted(stream, value, products)};
  Tensor product = Tensor::empty(value.shape(), products, stream.device());
  for (int step = 1; step <= kSteps; ++step) {
    Matrix a = gram(stream, x.factor);
    const Shards rows_of_a = rows_of(stream, std::min(rows, value.shape()[1]));
    Tensor squared = Tensor::empty(a.value.shape(), products, stream.device());
    kernels::linear_forward(stream, rows_of_a, a.factor, a.factor, {}, squared);
    combine(stream, kB, a, kC, squared);  // symmetric, so it may be used as its transpose
    if (is_wide) {
      kernels::linear_backward_data(stream, rows_of_a, a.factor, x.factor, product);
    } else {
      kernels::linear_forward(stream, rows_of(stream, rows), x.factor, a.factor, {}, product);
    }
    const double by = step == kSteps ? scale : 1;
    combine(stream, by * kA, x, by, product);
  }
}

Muon::Muon(std::vector<ParameterGroup> groups, const MuonParams& params)
    : Optimizer(std::move(groups)),
      params_(params),
      matrices_(groups_of(this->groups(), true)),
      rest_(groups_of(this->groups(), false),
            {.lr = params.lr,
             .momentum = static_cast<float>(params.momentum),
             .nesterov = params.nesterov}) {
  Device device = Device::kCpu;
  for (const ParameterGroup& group : matrices_) {
    for (const NamedParameter& parameter : group.parameters) {
      const Tensor& value = parameter.var.value();
      device = value.device();
      momentum_.push_back(
          params_.momentum == 0 ? Tensor() : Tensor::zeros(value.shape(), Dtype::kF32, device));
    }
  }
  Tensor one = Tensor::empty({1}, Dtype::kF32);
  *one.data<float>() = 1;
  one_ = Tensor::empty({1}, Dtype::kF32, device);
  overwrite(one, one_);
}

void Muon::set_lr(double lr) {
  params_.lr = lr;
  rest_.set_lr(lr);
}

void Muon::follow(const kernels::StepControl& control) {
  Optimizer::follow(control);
  rest_.follow(control);
}

void Muon::step(Stream& stream) {
  size_t next = 0;
  for (const ParameterGroup& group : matrices_) {
    for (const NamedParameter& parameter : group.parameters) {
      const size_t matrix = next++;
      if (parameter.var.grad().defined()) step_matrix(stream, matrix, group, parameter.var);
    }
  }
  rest_.step(stream);
}

void Muon::step_matrix(Stream& stream, size_t matrix, const ParameterGroup& group, const Var& var) {
  const Tensor& value = var.value();
  const int64_t rows = value.shape()[0];
  const int64_t columns = value.numel() / rows;
  kernels::StepControl control = control_of(group);

  Tensor direction = zeros(stream, value.shape());
  kernels::SgdSlot to_direction = {
      .param = direction, .grad = var.grad(), .momentum = momentum_[matrix]};
  kernels::sgd_step(stream,
                    {&to_direction, 1},
                    {.lr = -1,
                     .momentum = static_cast<float>(params_.momentum),
                     .nesterov = params_.nesterov,
                     .control = {.state = control.state,
                                 .grad_factor = control.grad_factor,
                                 .unscales = control.unscales}});

  // LARC's factor for a parameter of norm 1 is 1 / (|direction| + eps).
  const Tensor lengths[] = {one_, direction};
  Tensor norms = Tensor::empty({3}, Dtype::kF32, stream.device());
  kernels::tensor_norms(stream, lengths, norms);
  const Tensor no_decay = zeros(stream, {1});
  Tensor factor = Tensor::empty({1}, Dtype::kF32, stream.device());
  kernels::larc_factors(stream, norms, no_decay, {.trust = 1, .eps = 1e-7F, .clip = false}, factor);
  Tensor x = zeros(stream, value.shape());
  kernels::SgdSlot to_x = {.param = x, .grad = direction, .momentum = {}, .factor = factor};
  kernels::sgd_step(stream, {&to_x, 1}, {.lr = -1});

  Tensor as_matrix = x.view({rows, columns});
  const double ratio = static_cast<double>(rows) / static_cast<double>(columns);
  orthogonalize(stream, as_matrix, std::sqrt(std::max(1.0, ratio)), params_.products);

  control.unscales = false;
  control.grad_factor = {};
  kernels::SgdSlot to_value = {.param = value, .grad = x, .momentum = {}, .copy = var.copy()};
  kernels::sgd_step(stream,
                    {&to_value, 1},
                    {.lr = params_.lr,
                     .weight_decay = static_cast<float>(group.weight_decay),
                     .control = control});
}

std::vector<StateEntry> Muon::state() const {
  std::vector<StateEntry> entries;
  size_t next = 0;
  for (const ParameterGroup& group : matrices_) {
    for (const NamedParameter& parameter : group.parameters) {
      const Tensor& buffer = momentum_[next++];
      if (!buffer.defined()) continue;
      entries.push_back({.name = parameter.name + ".momentum_buffer",
                         .tensor = buffer,
                         .file_shape = parameter.file_shape});
    }
  }
  const std::vector<StateEntry> rest = rest_.state();
  entries.insert(entries.end(), rest.begin(), rest.end());
  return entries;
}

}  // namespace lockstep::nn
