#include "nn/autocast.h"

#include "nn/functional.h"

namespace lockstep::nn {

Var for_products(const Var& x) {
  const std::optional<Dtype> autocast = x.batch().precision.autocast;
  return autocast ? cast(x, *autocast) : x;
}

Var for_norms(const Var& x) {
  return x.batch().precision.autocast ? cast(x, Dtype::kF32) : x;
}

}  // namespace lockstep::nn
