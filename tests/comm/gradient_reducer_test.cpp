#include "comm/gradient_reducer.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "comm/single.h"
#include "comm/thread_communicator.h"
#include "tests/support/collectives.h"

namespace lockstep::comm {
namespace {

using testing::cancelling_values;

constexpr int64_t kShards = 8;

void accumulate(Stream&, const Tensor& src, Tensor& dst) {
  for (int64_t i = 0; i < dst.numel(); ++i) dst.data<float>()[i] += src.data<float>()[i];
}

// Five parameters around the alignment of the views, and a loss whose gradients are known: shard
// k's leaf is cancelling_values(k), times `factor`.
class Model {
 public:
  explicit Model(Communicator& peers) : shards_(Shards::cut(kShards, kShards, 1)) {
    const int64_t local = kShards / peers.size();
    shards_ = Shards::cut(local, local, 1);
    shards_.total = kShards;
    shards_.first = peers.rank() * local;
    for (const Shape& shape : {Shape{1}, Shape{63}, Shape{4, 4, 2, 2}, Shape{5, 13}, Shape{1000}}) {
      parameters.emplace_back(Tensor::zeros(shape, Dtype::kF32), true);
    }
  }

  // Runs backward() through all parameters but those in `unused`.
  void backward(float factor = 1, const std::set<size_t>& unused = {}) {
    auto batch = std::make_shared<Batch>();
    batch->stream = &stream;
    batch->shards = shards_;
    batch->recording = true;
    batch->accumulate = accumulate;
    std::vector<Var> inputs = {Var(Tensor::zeros({shards_.local()}, Dtype::kF32), batch)};
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!unused.contains(i)) inputs.push_back(parameters[i]);
    }
    const size_t count = inputs.size();
    const Tensor leaves = Tensor::zeros({shards_.local()}, Dtype::kF32);
    Var loss = record("known", leaves, inputs, [=, this](Stream&, const Tensor&, Grads& grads) {
      for (size_t i = 1; i < count; ++i) {
        if (grads.wants(i)) write_leaves(grads.overwrite(i), factor);
      }
    });
    loss.backward();
  }

  Stream stream;
  std::vector<Var> parameters;
  const std::vector<std::string> names = {"a", "b", "c", "d", "e"};

 private:
  void write_leaves(Tensor& leaves, float factor) const {
    for (int64_t k = 0; k < shards_.local(); ++k) {
      const auto values = cancelling_values(static_cast<int>(shards_.first + k), leaves.shape()[1]);
      std::ranges::transform(
          values, leaves.slice(k, 1).data<float>(), [=](float value) { return factor * value; });
    }
  }

  Shards shards_;
};

std::vector<float> values_of(const Tensor& tensor) {
  const auto span = tensor.span<float>();
  return {span.begin(), span.end()};
}

class ReducerRanks : public ::testing::TestWithParam<int> {};

TEST_P(ReducerRanks, ContinueTheShardsTree) {
  spawn_ranks(GetParam(), [](Communicator& peers) {
    Model model(peers);
    GradientReducer reducer(peers, model.stream, model.parameters, model.names);
    for (int step = 0; step < 2; ++step) {
      model.backward();
      reducer.finish();
      for (Var& parameter : model.parameters) {
        EXPECT_EQ(parameter.grad().shape(), parameter.shape());
        EXPECT_EQ(values_of(parameter.grad()),
                  testing::sum_of_cancelling_values(kShards, parameter.value().numel()));
        parameter.set_grad({});
      }
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, ReducerRanks, ::testing::Values(1, 2, 4, 8));

class Reducer : public ::testing::Test {
 protected:
  Reducer() : model_(alone_), reducer_(alone_, model_.stream, model_.parameters, model_.names) {}

  SingleCommunicator alone_;
  Model model_;
  GradientReducer reducer_;
};

TEST_F(Reducer, ViewsShareOneBufferAligned) {
  model_.backward();
  reducer_.finish();
  const float* base = model_.parameters[0].grad().data<float>();
  const float* end = base;  // of the views so far
  for (const Var& parameter : model_.parameters) {
    const float* view = parameter.grad().data<float>();
    EXPECT_EQ((view - base) % 64, 0);
    EXPECT_LT(view - end, 64);
    EXPECT_TRUE(std::all_of(end, view, [](float padding) { return padding == 0; }));
    end = view + parameter.value().numel();
  }
}

TEST_F(Reducer, MicroStepsAddUp) {
  model_.backward(1);
  model_.backward(2);
  reducer_.finish();
  const Tensor& sum = model_.parameters[4].grad();
  std::vector<float> leaves[kShards];
  for (int k = 0; k < kShards; ++k) leaves[k] = cancelling_values(k, sum.numel());
  for (size_t i = 0; i < leaves[0].size(); ++i) {
    std::vector<float> element(kShards);
    std::ranges::transform(
        leaves, element.begin(), [=](const auto& leaf) { return leaf[i] + 2 * leaf[i]; });
    ASSERT_EQ(sum.data<float>()[i], testing::tree_fold(element, 0, element.size())) << i;
  }
}

TEST_F(Reducer, NamesParametersWithoutGradient) {
  model_.backward(1, {1, 3});
  try {
    reducer_.finish();
    FAIL() << "no error";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(), "2 of 5 parameters got no gradient");
    EXPECT_EQ(error.why(), "the loss does not depend on b (1), d (3)");
  }
}

TEST_F(Reducer, GradientsOfTheLastStepDoNotCount) {
  model_.backward();
  reducer_.finish();
  EXPECT_THROW(reducer_.finish(), InternalError);
}

TEST_F(Reducer, FrozenParametersGetNone) {
  model_.parameters[2].set_requires_grad(false);
  model_.backward();
  reducer_.finish();
  EXPECT_FALSE(model_.parameters[2].grad().defined());
  EXPECT_TRUE(model_.parameters[3].grad().defined());
}

TEST(ReducerLife, LeavesTheParametersBehindWorking) {
  SingleCommunicator alone;
  Model model(alone);
  {
    const GradientReducer reducer(alone, model.stream, model.parameters, model.names);
  }
  model.backward();
  EXPECT_EQ(model.parameters[0].grad().shape(), (Shape{kShards, 1}));
}

TEST(ReducerLife, RefusesOtherDtypes) {
  SingleCommunicator alone;
  Stream stream;
  const std::vector<Var> half = {Var(Tensor::zeros({3}, Dtype::kF16), true)};
  EXPECT_THROW(GradientReducer(alone, stream, half, {"half"}), DtypeError);
}

}  // namespace
}  // namespace lockstep::comm
