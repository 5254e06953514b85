#include "nn/autocast.h"

#include "kernels/elementwise/copy.h"
#include "nn/functional.h"

namespace lockstep::nn {

Var cast_for_products(const Var& x) {
  const std::optional<Dtype> autocast = x.batch().precision.autocast;
  return autocast ? cast(x, *autocast) : x;
}

Var cast_for_norms(const Var& x) {
  return x.batch().precision.autocast ? cast(x, Dtype::kF32) : x;
}

const Tensor& weight_for(const Var& x, const Var& weight) {
  if (weight.has_derived_copy() && weight.copy().dtype() == x.dtype()) {
    Tensor copy = weight.copy();
    kernels::cast(x.stream(), weight.value(), copy);
  }
  return weight.as(x.dtype());
}

void add_copies(std::span<const NamedParameter> parameters, Dtype dtype) {
  for (const NamedParameter& parameter : parameters) {
    const Tensor& value = parameter.var.value();
    if (value.shape().rank() < 2) continue;
    Var var = parameter.var;
    var.set_copy(Tensor::empty(value.shape(), dtype, value.device()));
  }
}

void refresh_copies(Stream& stream, std::span<const NamedParameter> parameters) {
  for (const NamedParameter& parameter : parameters) {
    Tensor copy = parameter.var.copy();
    if (copy.defined()) kernels::cast(stream, parameter.var.value(), copy);
  }
}

void round_values(Stream& stream, std::span<const NamedParameter> parameters, Dtype dtype) {
  for (const NamedParameter& parameter : parameters) {
    Tensor value = parameter.var.value();
    Tensor rounded = parameter.var.copy();
    if (!rounded.defined()) {
      rounded = Tensor::empty(value.shape(), dtype, value.device());
      kernels::cast(stream, value, rounded);
    }
    kernels::cast(stream, rounded, value);
  }
}

}  // namespace lockstep::nn
