// A converted model normalizes over all ranks, in whatever groups its images were dealt.
#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "nn/layers.h"
#include "nn/residual_block.h"
#include "tests/support/close.h"
#include "tests/support/random_tensor.h"

namespace lockstep::nn::convert_sync_batchnorm_test {
namespace {

using testing::random_tensor;
using testing::same_bits;

constexpr int64_t kRanks = 2;

std::unique_ptr<Sequential> make_model() {
  Mt19937 rng(3);
  const Init init{rng};
  std::vector<std::unique_ptr<Module>> modules;
  modules.push_back(std::make_unique<BatchNorm>(init, 4));
  auto shortcut = std::make_unique<ProjectionShortcut>(init, 4, 8, 2);
  modules.push_back(std::make_unique<BasicBlock>(
      init, BlockOptions{.in_channels = 4, .planes = 8, .stride = 2}, std::move(shortcut)));
  return std::make_unique<Sequential>(std::move(modules));
}

// Eight images on a rank in two shards.
std::shared_ptr<const Batch> batch_of(Stream& stream,
                                      Communicator* peers,
                                      int64_t rank,
                                      int64_t groups) {
  Shards shards = Shards::cut(8, 2, 1);
  shards.total = 2 * kRanks;
  shards.first = 2 * rank;
  shards.groups = groups;
  shards.step_images = 8 * kRanks;
  shards.peers = peers;
  return make_batch(stream, shards);
}

// What a rank computes, and its state afterward.
std::vector<Tensor> run(Communicator& ranks, int64_t groups, bool converted) {
  const std::unique_ptr<Sequential> model = make_model();
  if (converted) convert_sync_batchnorm(*model);
  Stream stream;
  const auto batch = batch_of(stream, &ranks, ranks.rank(), groups);
  const Tensor images = random_tensor({8, 4, 6, 6}, 7 + static_cast<uint64_t>(ranks.rank()));
  std::vector<Tensor> results = {model->forward(Var(images, batch)).value()};
  for (const StateEntry& entry : model->state()) results.push_back(entry.tensor);
  return results;
}

TEST(ConvertSyncBatchnorm, MakesOneGroupOfAll) {
  comm::spawn_ranks(static_cast<int>(kRanks), [](Communicator& ranks) {
    const std::vector<Tensor> want = run(ranks, 1, false);
    const std::vector<Tensor> got = run(ranks, kRanks, true);
    const std::vector<Tensor> apart = run(ranks, kRanks, false);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same_bits(got[i], want[i])) << i;
    EXPECT_FALSE(same_bits(apart[0], want[0]));
  });
}

TEST(ConvertSyncBatchnorm, NeedsPeers) {
  const std::unique_ptr<Sequential> model = make_model();
  convert_sync_batchnorm(*model);
  Stream stream;
  const auto batch = batch_of(stream, nullptr, 1, kRanks);
  try {
    (void)model->forward(Var(random_tensor({8, 4, 6, 6}, 7), batch));
    FAIL() << "nothing was thrown";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "[batch_norm] a group of 4 shards spans ranks, and the batch has no peers");
  }
}

}  // namespace
}  // namespace lockstep::nn::convert_sync_batchnorm_test
