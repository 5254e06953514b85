// Checks of optimizers that follow a loss scale.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "kernels/optim/loss_scale.h"
#include "nn/optimizer.h"
#include "tests/support/close.h"
#include "tests/support/loss_scale_cases.h"
#include "tests/support/optimizers.h"
#include "tests/support/random_tensor.h"

namespace lockstep::testing {

// Scaled gradients must give the bits of unscaled ones, since a power of two cancels exactly. A
// step whose gradients are not finite must change nothing.
inline void expect_follows_loss_scale(const MakeOptimizer& make) {
  std::vector<nn::NamedParameter> plain = some_parameters();
  std::vector<nn::NamedParameter> scaled = some_parameters();
  const auto one = make(plain);
  const auto other = make(scaled);
  Stream stream;
  const std::vector<double> lrs = {0.1};
  const auto follow = [&](bool found_inf) {
    other->follow({.state = loss_scale_state(stream, 1024, 0, found_inf),
                   .lr_table = kernels::lr_table_of(lrs)});
  };
  one->set_lr(0.1);
  for (size_t i = 0; i < plain.size(); ++i) {
    plain[i].var.set_grad(random_tensor(plain[i].var.shape(), 50 + i));
    Tensor larger = random_tensor(plain[i].var.shape(), 50 + i);
    for (float& value : larger.span<float>()) value *= 1024;
    scaled[i].var.set_grad(larger);
  }
  follow(true);
  other->step(stream);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(same_bits(scaled[i].var.value(), plain[i].var.value())) << "skipped";
  }
  follow(false);
  one->step(stream);
  other->step(stream);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(same_bits(scaled[i].var.value(), plain[i].var.value())) << plain[i].name;
  }
}

}  // namespace lockstep::testing
