// Short trainings of the library's users.
#pragma once

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "comm/spawn.h"
#include "core/error.h"
#include "data/drawn_dataset.h"
#include "engine/trainer.h"
#include "nn/convnet.h"

namespace lockstep::testing {

inline TrainerOptions short_options() {
  return {
      .batch = 16, .shards = 4, .batch_norm_groups = 4, .optimizer = {.lr = 0.02, .momentum = 0.9}};
}

struct Trained {
  double loss = 0;
  std::vector<float> weights;

  bool operator==(const Trained&) const = default;
};

inline std::vector<float> weights_of(const nn::Module& network) {
  std::vector<float> all;
  for (const Var& parameter : network.parameters()) {
    const auto values = parameter.value().span<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// The ConvNet on the built-in digits.
inline Trained train_digits(Communicator& peers, const TrainerOptions& options, int64_t steps) {
  Mt19937 rng(42);
  nn::ConvNet network(nn::Init{rng});
  Trainer trainer(peers, network, data::open_digits(), options);
  Trained result;
  while (trainer.steps() < steps) result.loss = trainer.step().loss;
  result.weights = weights_of(network);
  return result;
}

// On rank 0 of so many ranks that are threads.
inline Trained train_on(int ranks, const TrainerOptions& options, int64_t steps) {
  Trained result;
  spawn(ranks, [&](Communicator& peers) {
    const Trained mine = train_digits(peers, options, steps);
    if (peers.rank() == 0) result = mine;
  });
  return result;
}

// The error that body() must end with says what, why and what to try.
template <class E>
std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const E& error) {
    EXPECT_STRNE(error.what(), "");
    EXPECT_NE(error.why(), "") << error.what();
    EXPECT_NE(error.hint(), "") << error.what();
    return error.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "another error: " << other.what();
    return {};
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace lockstep::testing
