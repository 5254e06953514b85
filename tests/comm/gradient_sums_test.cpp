// Reduced gradients must equal the golden fold over micro-steps, shards and ranks, with any
// options.
#include <gtest/gtest.h>

#include "comm/gradient_reducer.h"
#include "comm/shared/thread_ranks.h"
#include "comm/single.h"
#include "kernels/elementwise/copy.h"
#include "kernels/reduce/tree_sum.h"
#include "tests/support/known_gradients.h"

namespace lockstep::comm::gradient_sums_test {
namespace {

using testing::expect_same;
using testing::known_sum;
using testing::KnownGradients;
using testing::KnownSum;

// The largest finite f16 is 65504.
float scale_for(Dtype wire) {
  return wire == Dtype::kF16 ? 1e-5F : 1;
}

// An exchange supplied by a user: every rank gathers all ranks' versions of a bucket and sums them
// itself.
std::unique_ptr<Work> gather_and_sum(Stream& stream, Communicator& peers, Bucket& bucket) {
  Tensor all = Tensor::empty({peers.size(), bucket.values.numel()}, bucket.values.dtype());
  peers.all_gather({bucket.values.bytes(), bucket.values.nbytes()}, {all.bytes(), all.nbytes()});
  kernels::tree_sum(stream, all, bucket.values);
  return nullptr;
}

struct Setup {
  int ranks = 2;
  int threads = 1;
  BucketCaps caps{};
  bool overlap = true;
  std::vector<size_t> order = {4, 3, 2, 1, 0};
  bool gather = false;  // use gather_and_sum
};

// Trains two steps on ranks that are threads and compares the gradients with `sum`.
void expect_golden(const Setup& setup, const KnownSum& sum) {
  std::vector<std::vector<float>> want;
  SingleCommunicator alone;
  for (const Var& parameter : KnownGradients(alone).parameters) {
    want.push_back(known_sum(sum, parameter.value().numel()));
  }
  spawn_ranks(setup.ranks, [&](Communicator& peers) {
    KnownGradients model(peers, sum.shards, setup.threads);
    ReducerOptions options{.caps = setup.caps,
                           .overlap = setup.overlap,
                           .wire = sum.wire,
                           .predivide = sum.predivide,
                           .micro_steps = sum.micro_steps};
    if (setup.gather) {
      options.exchange = [&](Communicator& all, Bucket& bucket) {
        return gather_and_sum(model.stream, all, bucket);
      };
    }
    GradientReducer reducer(peers, model.stream, model.parameters, model.names, options);
    for (int step = 0; step < 2; ++step) {
      for (int64_t a = 0; a < options.micro_steps; ++a) {
        if (a > 0) reducer.next_micro_step();
        model.backward({.micro_step = a, .scale = sum.scale, .order = setup.order});
      }
      reducer.finish();
      for (size_t i = 0; i < want.size(); ++i) {
        Var& parameter = model.parameters[i];
        EXPECT_EQ(parameter.grad().shape(), parameter.shape());
        expect_same(parameter.grad(), want[i]);
        parameter.set_grad({});
      }
    }
  });
}

class GradientSums : public ::testing::TestWithParam<int> {};

TEST_P(GradientSums, ContinueTheTreeOfMicroStepsAndShards) {
  for (int64_t steps = 1; steps <= 9; ++steps) {
    expect_golden({.ranks = GetParam()}, {.micro_steps = steps});
  }
}

TEST_P(GradientSums, AreRoundedToTheWireAtEveryNode) {
  for (const Dtype wire : {Dtype::kF16, Dtype::kBF16}) {
    for (const int64_t steps : {1, 2, 3, 7}) {
      for (const bool gather : {false, true}) {
        expect_golden({.ranks = GetParam(), .gather = gather},
                      {.micro_steps = steps, .wire = wire, .scale = scale_for(wire)});
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, GradientSums, ::testing::Values(1, 2, 4, 8));

TEST(GradientSums, DoNotDependOnBucketsOverlapOrThreads) {
  for (const int64_t cap : {int64_t{1}, int64_t{300}, int64_t{1} << 20, int64_t{25} << 20}) {
    for (const bool overlap : {true, false}) {
      for (const int threads : {1, 3}) {
        expect_golden({.threads = threads, .caps = {cap, cap}, .overlap = overlap},
                      {.micro_steps = 3});
      }
    }
  }
}

TEST(GradientSums, DoNotDependOnTheOrderInWhichGradientsBecomeReady) {
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  do {
    expect_golden({.ranks = 1, .caps = {1, 1}, .order = order}, {});
  } while (std::ranges::next_permutation(order).found);
}

TEST(GradientSums, EightShardsOnEightRanksOrOneShardInEightMicroSteps) {
  const KnownSum sum{.shards = 8, .micro_steps = 1};
  const KnownSum same{.shards = 1, .micro_steps = 8};
  ASSERT_EQ(known_sum(sum, 300), known_sum(same, 300));
  expect_golden({.ranks = 8}, sum);
  expect_golden({.ranks = 1}, same);
}

TEST(GradientSums, UnusedParametersCountAsZero) {
  for (const int64_t steps : {1, 3}) {
    spawn_ranks(2, [&](Communicator& peers) {
      KnownGradients model(peers);
      GradientReducer reducer(peers,
                              model.stream,
                              model.parameters,
                              model.names,
                              {.caps = {1, 1}, .micro_steps = steps, .zero_unused = true});
      for (int64_t a = 0; a < steps; ++a) {
        if (a > 0) reducer.next_micro_step();
        std::set<size_t> unused = {1};
        if (a == 0) unused.insert(2);
        if (a + 1 == steps) unused.insert(3);
        model.backward({.micro_step = a, .unused = unused});
      }
      reducer.finish();
      expect_same(model.parameters[0].grad(), known_sum({.micro_steps = steps}, 1));
      expect_same(model.parameters[1].grad(), std::vector<float>(63));
      expect_same(model.parameters[2].grad(),
                  known_sum({.micro_steps = steps, .zero_micro_steps = {0}}, 64));
      expect_same(model.parameters[3].grad(),
                  known_sum({.micro_steps = steps, .zero_micro_steps = {steps - 1}}, 65));
    });
  }
}

// All ranks' versions of a parameter are summed, although only rank 1 has used it.
TEST(GradientSums, UnusedOnOneRank) {
  spawn_ranks(2, [](Communicator& peers) {
    KnownGradients model(peers, 2);
    GradientReducer reducer(
        peers, model.stream, model.parameters, model.names, {.zero_unused = true});
    model.backward({.unused = peers.rank() == 0 ? std::set<size_t>{4} : std::set<size_t>{}});
    reducer.finish();
    std::vector<float> want = testing::known_leaf(1, 300, 1);
    for (float& value : want) value += 0.0F;
    expect_same(model.parameters[4].grad(), want);
  });
}

TEST(GradientSums, PredivideByAPowerOfTwoIsExact) {
  ASSERT_EQ(known_sum({.predivide = 8}, 300), known_sum({}, 300));
  expect_golden({.ranks = 4}, {.predivide = 8});
}

TEST(GradientSums, PredivideIsRoundedOnceBeforeAndOnceAfter) {
  expect_golden({}, {.micro_steps = 2, .predivide = 3});
  for (const Dtype wire : {Dtype::kF16, Dtype::kBF16}) {
    expect_golden({.gather = true}, {.wire = wire, .scale = 20 * scale_for(wire), .predivide = 6});
  }
}

TEST(GradientSums, WithoutAnExchangeTheyStayEachRanksOwn) {
  spawn_ranks(2, [](Communicator& peers) {
    KnownGradients model(peers, 2);
    GradientReducer reducer(
        peers, model.stream, model.parameters, model.names, {.algorithm = Algorithm::kNone});
    model.backward();
    reducer.finish();
    expect_same(model.parameters[4].grad(), testing::known_leaf(peers.rank(), 300, 1));
    EXPECT_EQ(peers.traffic().reduced_bytes, 0);
  });
}

// Rank 2 answers yes in the second of three steps.
void expect_answers(const ReducerOptions& base) {
  spawn_ranks(4, [&](Communicator& peers) {
    KnownGradients model(peers, 4);
    KnownGradients silent(peers, 4);
    int step = 0;
    ReducerOptions options = base;
    options.ask = [&] { return step == 1 && peers.rank() == 2; };
    GradientReducer asking(peers, model.stream, model.parameters, model.names, options);
    GradientReducer plain(peers, silent.stream, silent.parameters, silent.names, base);
    for (; step < 3; ++step) {
      model.backward();
      silent.backward();
      asking.finish();
      plain.finish();
      EXPECT_EQ(asking.any_said_yes(), step == 1) << "rank " << peers.rank();
      EXPECT_FALSE(plain.any_said_yes());
      for (size_t i = 0; i < model.parameters.size(); ++i) {
        const std::span<const float> want = silent.parameters[i].grad().span<float>();
        expect_same(model.parameters[i].grad(), {want.begin(), want.end()});
        model.parameters[i].set_grad({});
        silent.parameters[i].set_grad({});
      }
    }
    EXPECT_EQ(asking.times().buckets.size(), plain.times().buckets.size());
  });
}

TEST(GradientSums, AnAnswerOfEachRankTravelsAlongAndChangesNoBit) {
  for (const Dtype wire : {Dtype::kF32, Dtype::kF16, Dtype::kBF16}) {
    for (const BucketCaps& caps : {BucketCaps{}, BucketCaps{1, 1}}) {
      for (const bool overlap : {true, false}) {
        expect_answers({.caps = caps, .overlap = overlap, .wire = wire, .predivide = 8});
      }
    }
  }
  expect_answers({.algorithm = Algorithm::kStar});
}

// A compression hook: the user's own exchange rounds the leaves.
TEST(GradientSums, AUsersExchangeTakesTheCommunicatorsPlace) {
  spawn_ranks(2, [](Communicator& peers) {
    KnownGradients model(peers, 2);
    int64_t exchanged = 0;
    const auto rounded_to_bf16 = [&](Communicator& all, Bucket& bucket) {
      exchanged += std::ssize(bucket.parameters);
      Tensor narrow = Tensor::empty(bucket.values.shape(), Dtype::kBF16);
      kernels::cast(model.stream, bucket.values, narrow);
      kernels::cast(model.stream, narrow, bucket.values);
      return gather_and_sum(model.stream, all, bucket);
    };
    GradientReducer reducer(
        peers, model.stream, model.parameters, model.names, {.exchange = rounded_to_bf16});
    model.backward();
    reducer.finish();
    EXPECT_EQ(exchanged, 5);
    EXPECT_EQ(peers.traffic().reduced_bytes, 0);
    std::vector<float> want = testing::known_leaf(0, 300, 1);
    const std::vector<float> other = testing::known_leaf(1, 300, 1);
    for (size_t i = 0; i < want.size(); ++i) {
      want[i] = static_cast<float>(BFloat16(want[i])) + static_cast<float>(BFloat16(other[i]));
    }
    expect_same(model.parameters[4].grad(), want);
  });
}

}  // namespace
}  // namespace lockstep::comm::gradient_sums_test
