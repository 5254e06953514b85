// Tests which parameters take part, how buckets are laid out in memory, and what is refused.
#include "comm/gradient_reducer.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "comm/single.h"
#include "core/allocator.h"
#include "tests/support/known_gradients.h"

namespace lockstep::comm::gradient_reducer_test {
namespace {

using ::testing::ElementsAre;
using testing::expect_same;
using testing::known_sum;
using testing::KnownGradients;

template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return InternalError("");
}

class Reducer : public ::testing::Test {
 protected:
  Reducer() : model_(alone_) {}

  GradientReducer reducer(ReducerOptions options = {}) {
    return {alone_, model_.stream, model_.parameters, model_.names, std::move(options)};
  }

  SingleCommunicator alone_;
  KnownGradients model_;
};

TEST_F(Reducer, GradientsAreAlignedViewsOfTheirBucketAndZerosLieBetween) {
  for (const Dtype wire : {Dtype::kF32, Dtype::kF16}) {
    GradientReducer reducer = this->reducer({.wire = wire});
    for (int step = 0; step < 2; ++step) {
      model_.backward();
      reducer.finish();
      ASSERT_EQ(reducer.buckets().size(), 1U);
      const Bucket& bucket = reducer.buckets()[0];
      EXPECT_THAT(bucket.parameters, ElementsAre(4, 3, 2, 1, 0));
      const size_t width = size_of(wire);
      std::vector<bool> used(bucket.values.nbytes());
      for (size_t k = 0; k < bucket.parameters.size(); ++k) {
        Var& parameter = model_.parameters[bucket.parameters[k]];
        const auto begin = static_cast<size_t>(bucket.offsets[k]) * width;
        EXPECT_EQ(begin % 256, 0U);
        std::fill_n(used.begin() + static_cast<std::ptrdiff_t>(begin),
                    static_cast<size_t>(parameter.value().numel()) * width,
                    true);
        if (wire == Dtype::kF32) {
          EXPECT_EQ(parameter.grad().bytes(), bucket.values.bytes() + begin);
        }
        parameter.set_grad({});
      }
      for (size_t i = 0; i < used.size(); ++i) {
        EXPECT_TRUE(used[i] || bucket.values.bytes()[i] == std::byte{}) << "byte " << i;
      }
      EXPECT_EQ(bucket.bytes, std::ranges::count(used, true));
    }
  }
}

TEST_F(Reducer, LabelsTellWhatIsInABucket) {
  EXPECT_EQ(reducer().buckets()[0].label, "bucket 0 (5 tensors, e to a, 1.9 KiB)");
  const GradientReducer many = reducer({.caps = {1200, 600}});
  ASSERT_EQ(many.buckets().size(), 3U);
  EXPECT_EQ(many.buckets()[0].label, "bucket 0 (1 tensor, e, 1.2 KiB)");
  EXPECT_EQ(many.buckets()[1].label, "bucket 1 (3 tensors, d to b, 768 B)");
  EXPECT_EQ(many.buckets()[2].index, 2);
}

TEST_F(Reducer, NamesParametersWithoutGradient) {
  GradientReducer reducer = this->reducer();
  model_.backward({.unused = {1, 3}});
  const Error error = error_of([&] { reducer.finish(); });
  EXPECT_STREQ(error.what(), "2 of 5 parameters got no gradient");
  EXPECT_EQ(error.why(), "the loss does not depend on b (1), d (3)");
  EXPECT_EQ(error.remedy(), Remedy::kUnusedZero);
  EXPECT_EQ(error.code(), ExitCode::kUsage);
}

TEST_F(Reducer, NamesTheMicroStepWithoutGradient) {
  GradientReducer reducer = this->reducer({.micro_steps = 3});
  model_.backward();
  reducer.next_micro_step();
  model_.backward({.micro_step = 1, .unused = {2}});
  const Error error = error_of([&] { reducer.next_micro_step(); });
  EXPECT_STREQ(error.what(), "1 of 5 parameters got no gradient in micro-step 2 of 3");
  EXPECT_EQ(error.why(), "the loss does not depend on c (2)");
}

TEST_F(Reducer, GradientsOfTheLastStepDoNotCount) {
  GradientReducer reducer = this->reducer();
  model_.backward();
  reducer.finish();
  EXPECT_THROW(reducer.finish(), UsageError);
}

TEST_F(Reducer, FrozenParametersAreLeftOut) {
  model_.parameters[2].set_requires_grad(false);
  GradientReducer reducer = this->reducer();
  model_.backward();
  reducer.finish();
  EXPECT_THAT(reducer.buckets()[0].parameters, ElementsAre(4, 3, 1, 0));
  EXPECT_FALSE(model_.parameters[2].grad().defined());
  EXPECT_TRUE(model_.parameters[3].grad().defined());
}

TEST_F(Reducer, NamesAParameterThatWasFrozenLater) {
  GradientReducer reducer = this->reducer();
  model_.parameters[2].set_requires_grad(false);
  model_.backward();
  const Error error = error_of([&] { reducer.finish(); });
  EXPECT_STREQ(error.what(), "c (2) was frozen after its GradientReducer or Trainer was made");
}

TEST_F(Reducer, NamesAParameterThatWasUnfrozenLater) {
  model_.parameters[4].set_requires_grad(false);
  GradientReducer reducer = this->reducer({.micro_steps = 2});
  model_.parameters[4].set_requires_grad(true);
  model_.backward();
  const Error error = error_of([&] { reducer.next_micro_step(); });
  EXPECT_STREQ(error.what(), "e (4) was unfrozen after its GradientReducer or Trainer was made");
}

TEST_F(Reducer, ASharedParameterCountsOnce) {
  std::vector<Var> parameters = model_.parameters;
  std::vector<std::string> names = model_.names;
  parameters.push_back(parameters[1]);
  names.emplace_back("b again");
  GradientReducer reducer(alone_, model_.stream, parameters, names);
  EXPECT_THAT(reducer.buckets()[0].parameters, ElementsAre(4, 3, 2, 1, 0));
  model_.backward();
  reducer.finish();
  expect_same(parameters[5].grad(), known_sum({}, 63));
}

TEST_F(Reducer, RefusesASecondBackwardOfAMicroStep) {
  GradientReducer reducer = this->reducer();
  model_.backward();
  const Error error = error_of([&] { model_.backward(); });
  EXPECT_STREQ(error.what(), "e (4) got a second gradient in one micro-step");
}

TEST_F(Reducer, RefusesToAddToTheLastStepsGradient) {
  // A leaf of one shard looks like a reduced gradient with one row.
  KnownGradients model(alone_, 1);
  std::vector<Var> parameters = {Var(Tensor::zeros({1, 300}, Dtype::kF32), true)};
  model.parameters[4] = parameters[0];
  GradientReducer reducer(alone_, model.stream, parameters, {"e"});
  model.backward();
  reducer.finish();
  EXPECT_THROW(model.backward(), InternalError);
}

TEST_F(Reducer, CountsMicroSteps) {
  GradientReducer two = reducer({.micro_steps = 2});
  model_.backward();
  EXPECT_THROW(two.finish(), InternalError);
  two.next_micro_step();
  model_.backward();
  EXPECT_THROW(two.next_micro_step(), InternalError);
}

TEST_F(Reducer, AStepAllocatesNothingFromTheSystemAfterTheFirst) {
  for (const Dtype wire : {Dtype::kF32, Dtype::kBF16}) {
    GradientReducer reducer = this->reducer({.wire = wire, .micro_steps = 5});
    AllocatorStats first;
    for (int step = 0; step < 4; ++step) {
      for (int64_t a = 0; a < 5; ++a) {
        if (a > 0) reducer.next_micro_step();
        model_.backward({.micro_step = a});
      }
      reducer.finish();
      for (Var& parameter : model_.parameters) parameter.set_grad({});
      if (step == 0) first = cpu_allocator().stats();
    }
    EXPECT_EQ(cpu_allocator().stats().system_allocations, first.system_allocations);
    EXPECT_EQ(cpu_allocator().stats().bytes_in_use, first.bytes_in_use);
  }
}

TEST_F(Reducer, LeavesTheParametersBehindWorking) {
  {
    const GradientReducer gone = reducer();
  }
  model_.backward();
  EXPECT_EQ(model_.parameters[0].grad().shape(), (Shape{8, 1}));
}

TEST_F(Reducer, RefusesParametersOfAnotherAndLeavesThatWorking) {
  GradientReducer first = reducer();
  EXPECT_THROW(reducer(), UsageError);
  model_.backward();
  first.finish();
  EXPECT_EQ(model_.parameters[0].grad().bytes(),
            first.buckets()[0].values.bytes() + first.buckets()[0].offsets[4] * 4);
}

TEST_F(Reducer, RefusesOtherDtypes) {
  const std::vector<Var> half = {Var(Tensor::zeros({3}, Dtype::kF16), true)};
  EXPECT_THROW(GradientReducer(alone_, model_.stream, half, {"half"}), DtypeError);
}

TEST_F(Reducer, RefusesOptionsWithoutMeaning) {
  EXPECT_THROW(reducer({.micro_steps = 0}), InternalError);
  EXPECT_THROW(reducer({.predivide = 0}), InternalError);
}

}  // namespace
}  // namespace lockstep::comm::gradient_reducer_test
