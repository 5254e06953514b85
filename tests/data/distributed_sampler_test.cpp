#include "data/distributed_sampler.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/digest.h"
#include "core/error.h"
#include "tests/support/golden.h"

namespace lockstep::data::distributed_sampler_test {
namespace {

using Images = std::vector<int64_t>;

Images first(const Images& images, size_t count) {
  return {images.begin(), images.begin() + static_cast<std::ptrdiff_t>(count)};
}

// Values printed by PyTorch 2.9.1.
TEST(DistributedSampler, DealsPyTorchsOrder) {
  EXPECT_EQ(epoch_order({.size = 10, .seed = 0}), (Images{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}));
  EXPECT_EQ(epoch_order({.size = 10, .seed = 1}), (Images{5, 6, 1, 2, 0, 8, 9, 3, 7, 4}));
  EXPECT_EQ(epoch_order({.size = 10, .seed = 42}), (Images{2, 6, 1, 8, 4, 5, 0, 9, 3, 7}));
}

TEST(DistributedSampler, EpochIsAddedToTheSeed) {
  EXPECT_EQ(epoch_order({.size = 10, .seed = 40, .epoch = 2}),
            epoch_order({.size = 10, .seed = 42}));
}

TEST(DistributedSampler, PadsFromTheStart) {
  const SamplerOptions options{.size = 10, .replicas = 4};
  EXPECT_EQ(distributed_sampler(options, 0), (Images{4, 3, 6}));
  EXPECT_EQ(distributed_sampler(options, 1), (Images{1, 9, 2}));
  EXPECT_EQ(distributed_sampler(options, 2), (Images{7, 0, 4}));
  EXPECT_EQ(distributed_sampler(options, 3), (Images{5, 8, 1}));
}

TEST(DistributedSampler, RepeatsImagesAsTimm) {
  for (const auto& golden : testing::golden_cases("repeat_sampler")) {
    SCOPED_TRACE(golden.name());
    const auto size = static_cast<int64_t>(golden.number("n"));
    const auto replicas = static_cast<int64_t>(golden.number("world"));
    const auto repeats = static_cast<int64_t>(golden.number("repeats"));
    const SamplerOptions options{
        .size = size, .replicas = replicas, .epoch = 1, .repeats = repeats};
    const Tensor want = golden.tensor("indices");
    ASSERT_EQ(want.shape(), (Shape{replicas, samples_per_replica(options)}));
    Images views;
    for (int64_t replica = 0; replica < replicas; ++replica) {
      const Images mine = distributed_sampler(options, replica);
      views.insert(views.end(), mine.begin(), mine.end());
      for (size_t j = 0; j < mine.size(); ++j) {
        const auto place = replica * want.shape()[1] + static_cast<int64_t>(j);
        EXPECT_EQ(mine[j] % size, want.data<int64_t>()[place]) << j;
        EXPECT_LT(mine[j], repeats * size);
      }
    }
    std::ranges::sort(views);
    EXPECT_EQ(std::ranges::adjacent_find(views), views.end()) << "a view is there twice";
  }
}

TEST(DistributedSampler, DropsTheLast) {
  const SamplerOptions options{.size = 10, .replicas = 4, .drop_last = true};
  EXPECT_EQ(distributed_sampler(options, 0), (Images{4, 3}));
  EXPECT_EQ(distributed_sampler(options, 1), (Images{1, 9}));
  EXPECT_EQ(distributed_sampler(options, 2), (Images{7, 0}));
  EXPECT_EQ(distributed_sampler(options, 3), (Images{5, 8}));
  EXPECT_EQ(samples_per_replica({.size = 12, .replicas = 4, .drop_last = true}), 3);
  EXPECT_EQ(samples_per_replica({.size = 3, .replicas = 4, .drop_last = true}), 0);
}

TEST(DistributedSampler, PadsInCyclesWhenImagesAreFew) {
  const SamplerOptions options{.size = 2, .replicas = 7, .shuffle = false};
  Images dealt;
  for (int64_t replica = 0; replica < 7; ++replica) {
    const Images mine = distributed_sampler(options, replica);
    dealt.insert(dealt.end(), mine.begin(), mine.end());
  }
  EXPECT_EQ(dealt, (Images{0, 1, 0, 1, 0, 1, 0}));
}

TEST(DistributedSampler, WithoutShuffleKeepsTheOrder) {
  EXPECT_EQ(distributed_sampler({.size = 5, .replicas = 2, .epoch = 3, .shuffle = false}, 1),
            (Images{1, 3, 0}));
}

TEST(DistributedSampler, DealsMnistToTwo) {
  const SamplerOptions options{.size = 60000, .replicas = 2};
  EXPECT_EQ(first(distributed_sampler(options, 0), 4), (Images{36044, 57327, 21567, 9481}));
  EXPECT_EQ(first(distributed_sampler(options, 1), 4), (Images{10678, 55074, 15479, 43095}));
}

// XXH3 of the comma-joined lists whose SHA-256 begin with d825f07d06c15a38 and 10e6827bf6800cff.
TEST(DistributedSampler, DealsAllOfMnistAsPyTorchDoes) {
  for (const auto& [epoch, want] :
       {std::pair(0, "0c25b11fa4ce68ba"), std::pair(1, "887ee5a89c87f794")}) {
    Digest digest;
    digest.update(fmt::format("{}", fmt::join(epoch_order({.size = 60000, .epoch = epoch}), ",")));
    EXPECT_EQ(to_hex(digest.value()), want) << "epoch " << epoch;
  }
}

TEST(DistributedSampler, RefusesAReplicaThatIsNone) {
  EXPECT_THROW(distributed_sampler({.size = 10, .replicas = 2}, 2), InternalError);
  EXPECT_THROW(distributed_sampler({.size = 0}, 0), InternalError);
}

}  // namespace
}  // namespace lockstep::data::distributed_sampler_test
