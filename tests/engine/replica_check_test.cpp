#include "engine/update/replica_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "core/error.h"
#include "nn/convnet.h"

namespace lockstep::replica_check_test {
namespace {

using ::testing::HasSubstr;

// Returns the result of the check after `damage` has changed rank 1's network.
template <class Damage>
std::string found_after(Damage&& damage) {
  std::string found = "nothing";
  comm::spawn_ranks(3, [&](Communicator& peers) {
    Mt19937 rng(3);
    nn::ConvNet model(nn::Init{rng});
    const nn::Sgd optimizer(model.named_parameters(), {.lr = 0.1F, .momentum = 0.9F});
    const ReplicaCheck check(model, optimizer);
    if (peers.rank() == 1) damage(model, optimizer);
    try {
      check.compare(peers, 40);
    } catch (const DivergedError& error) {
      if (peers.rank() == 0) found = error.what();
    }
  });
  return found;
}

TEST(ReplicaCheck, EqualReplicasPass) {
  EXPECT_EQ(found_after([](nn::ConvNet&, const nn::Sgd&) {}), "nothing");
}

TEST(ReplicaCheck, NamesRankTensorAndElement) {
  const std::string found = found_after([](nn::ConvNet& model, const nn::Sgd&) {
    Tensor weight = model.parameters()[0].value();
    weight.bytes()[4 * 37] ^= std::byte{1};
  });
  EXPECT_THAT(found, HasSubstr("ranks hold different weights after step 40: rank 1 "));
  EXPECT_THAT(found, HasSubstr("layer1.0.weight"));
  EXPECT_THAT(found, HasSubstr("element 37"));
}

TEST(ReplicaCheck, LooksAtMomentumToo) {
  const std::string found = found_after([](nn::ConvNet&, const nn::Sgd& optimizer) {
    Tensor momentum = optimizer.state().back().tensor;
    momentum.bytes()[0] ^= std::byte{1};
  });
  EXPECT_THAT(found, HasSubstr("fc.bias.momentum_buffer"));
}

}  // namespace
}  // namespace lockstep::replica_check_test
