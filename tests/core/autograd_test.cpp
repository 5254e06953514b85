#include "core/autograd.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/allocator.h"
#include "tests/support/no_memory.h"
#include "tests/support/tape_ops.h"

namespace lockstep::autograd_test {
namespace {

using testing::Autograd;
using testing::scale;
using testing::sum;
using testing::values_of;
using testing::vector_of;

TEST_F(Autograd, ParameterGradientsAreShardLeaves) {
  Var w(vector_of({3}), true);
  Var loss = scale(input({1, 2}), w);
  loss.backward();
  EXPECT_EQ(w.grad().shape(), (Shape{2, 1}));
  EXPECT_EQ(values_of(w.grad()), (std::vector<float>{1, 2}));
}

TEST_F(Autograd, SumsWhatSeveralConsumersSend) {
  Var x = input({1, 2});
  x.set_requires_grad(true);
  Var w(vector_of({3}), true);
  const Var y = scale(x, w);               // 3x
  Var loss = sum(scale(y, w), sum(y, x));  // 9x + 3x + x
  loss.backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<float>{13, 13}));
  EXPECT_EQ(values_of(w.grad()), (std::vector<float>{7, 14}));  // d(w^2 + w + 1)x/dw = (2w + 1)x
}

TEST_F(Autograd, OneValueUsedTwiceByOneOp) {
  Var x = input({5});
  x.set_requires_grad(true);
  Var loss = sum(x, x);
  loss.backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<float>{2}));
}

TEST_F(Autograd, SecondBackwardAddsUntilCleared) {
  Var w(vector_of({3}), true);
  scale(input({1, 2}), w).backward();
  scale(input({10, 20}), w).backward();
  EXPECT_EQ(values_of(w.grad()), (std::vector<float>{11, 22}));
  w.set_grad({});
  scale(input({1, 2}), w).backward();
  EXPECT_EQ(values_of(w.grad()), (std::vector<float>{1, 2}));
}

TEST_F(Autograd, HooksFireOnceWithTheLastContribution) {
  Var first(vector_of({2}), true);
  Var last(vector_of({3}), true);
  std::vector<std::string> order;
  first.on_grad_ready([&](Var& v) {
    order.push_back("first");
    EXPECT_EQ(values_of(v.grad()), (std::vector<float>{3 + 2 * 2 * 3}));  // both uses are in
  });
  last.on_grad_ready([&](Var&) { order.push_back("last"); });
  const Var x = input({1});
  Var loss = scale(sum(scale(x, first), scale(scale(x, first), first)), last);
  loss.backward();
  EXPECT_EQ(order, (std::vector<std::string>{"last", "first"}));
}

TEST_F(Autograd, UnreachedAndFrozenLeavesStayUndefined) {
  Var used(vector_of({2}), true);
  Var unused(vector_of({2}), true);
  Var frozen(vector_of({2}), false);
  scale(scale(input({1}), frozen), used).backward();
  EXPECT_TRUE(used.grad().defined());
  EXPECT_FALSE(unused.grad().defined());
  EXPECT_FALSE(frozen.grad().defined());
}

TEST_F(Autograd, RecordsNothingInEvaluation) {
  Var w(vector_of({2}), true);
  Var out = scale(input({1}, false), w);
  EXPECT_FALSE(out.requires_grad());
  EXPECT_THROW(out.backward(), InternalError);
}

TEST_F(Autograd, FreesSavedMemoryAsItGoes) {
  Var w(vector_of({2}), true);
  Var x = input({1, 2, 3});
  const size_t before = cpu_allocator().stats().bytes_in_use;
  {
    Var loss = scale(scale(x, w), w);
    loss.backward();
    EXPECT_THROW(loss.backward(), InternalError);  // the tape is gone
  }
  w.set_grad({});
  EXPECT_EQ(cpu_allocator().stats().bytes_in_use, before);
}

TEST_F(Autograd, ALongTapeIsDropped) {
  Var w(vector_of({1}), true);
  const size_t before = cpu_allocator().stats().bytes_in_use;
  {
    Var x = input({1});
    for (int i = 0; i < 300'000; ++i) x = scale(x, w);
    EXPECT_TRUE(x.requires_grad());
  }
  EXPECT_EQ(cpu_allocator().stats().bytes_in_use, before);
}

TEST_F(Autograd, ATapeIsDroppedWhenMemoryHasRunOut) {
  if (!testing::can_exhaust_memory()) GTEST_SKIP() << "a sanitizer allocates, too";
  Var w(vector_of({1}), true);
  Var x = input({1});
  for (int i = 0; i < 1000; ++i) x = scale(x, w);
  EXPECT_EXIT(
      {
        testing::exhaust_memory();
        x = Var();
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0),
      "");
}

// The gradient of `scale` that needs its input asks for it at that time.
Var lazy_scale(const Var& x, const Var& w) {
  Tensor out = vector_of({x.value().data<float>()[0] * w.value().data<float>()[0]});
  return record("lazy_scale", out, {x, w}, [=](Stream&, const Tensor& grad_out, Grads& grads) {
    const float g = grad_out.data<float>()[0];
    if (grads.wants(0)) grads.overwrite(0).data<float>()[0] = g * w.value().data<float>()[0];
    if (grads.wants(1)) grads.overwrite(1).data<float>()[0] = g * x.value().data<float>()[0];
  });
}

// out = x + 1, and how often it was made again.
Var plus_one(const Var& x, int& remade) {
  const Tensor in = x.value();
  const auto pass = [](Stream&, Tensor& grad_out, Grads& grads) {
    if (grads.wants(0)) grads.give(0, grad_out);
  };
  const auto remake = [=, &remade](Stream&) {
    ++remade;
    return vector_of({in.data<float>()[0] + 1});
  };
  return record("plus_one", vector_of({in.data<float>()[0] + 1}), {x}, pass, remake);
}

TEST_F(Autograd, AForgottenValueIsMadeAgainWhenBackwardAsks) {
  int remade = 0;
  Var w(vector_of({3}), true);
  Var x = input({4});
  x.set_requires_grad(true);
  Var y = plus_one(x, remade);
  Var loss = lazy_scale(y, w);
  const size_t before = cpu_allocator().stats().bytes_in_use;
  y.forget();
  EXPECT_LT(cpu_allocator().stats().bytes_in_use, before);
  EXPECT_EQ(y.shape(), (Shape{1})) << "known without the value";
  EXPECT_EQ(remade, 0);
  loss.backward();
  EXPECT_EQ(remade, 1);
  EXPECT_EQ(values_of(w.grad()), (std::vector<float>{5}));
  EXPECT_EQ(values_of(x.grad()), (std::vector<float>{3}));
}

TEST_F(Autograd, AForgottenValueIsMadeAgainOnceForEveryone) {
  int remade = 0;
  Var y = plus_one(input({4}), remade);  // no gradient wanted below it
  const Var copy = y;
  y.forget();
  EXPECT_EQ(values_of(copy.value()), (std::vector<float>{5}));
  EXPECT_EQ(values_of(y.value()), (std::vector<float>{5}));
  EXPECT_EQ(remade, 1);
}

TEST_F(Autograd, ForgettingIsForGoodInEvaluation) {
  int remade = 0;
  Var y = plus_one(input({4}, false), remade);
  y.forget();
  EXPECT_THROW(y.value(), InternalError);
  EXPECT_EQ(remade, 0);
}

TEST_F(Autograd, ForgetsOnlyWhatCanBeMadeAgain) {
  Var w(vector_of({2}), true);
  Var x = input({1});
  Var y = scale(x, w);
  EXPECT_THROW(w.forget(), InternalError);
  EXPECT_THROW(x.forget(), InternalError);
  EXPECT_THROW(y.forget(), InternalError);
  EXPECT_EQ(values_of(y.value()), (std::vector<float>{2}));
}

TEST_F(Autograd, KeepsNoActivationThatNobodyAsksFor) {
  Var x = input({1});
  x.set_requires_grad(true);
  Var y = sum(x, x);
  const size_t before = cpu_allocator().stats().bytes_in_use;
  for (int i = 0; i < 3; ++i) y = sum(y, y);
  EXPECT_EQ(cpu_allocator().stats().bytes_in_use, before);
  y.backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<float>{16}));
}

TEST_F(Autograd, AGivenGradientMustFit) {
  Var x = input({1, 2});
  x.set_requires_grad(true);
  Var bad = record("bad", vector_of({1, 2}), {x}, [](Stream&, Tensor&, Grads& grads) {
    grads.give(0, vector_of({1}));
  });
  try {
    bad.backward();
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[bad] gradient 0: shape (1), expected (2)");
  }
  Var half = record("half", vector_of({1, 2}), {x}, [](Stream&, Tensor&, Grads& grads) {
    grads.give(0, Tensor::zeros({2}, Dtype::kF16));
  });
  try {
    half.backward();
    FAIL() << "no error";
  } catch (const DtypeError& error) {
    EXPECT_STREQ(error.what(), "[half] gradient 0: f16, expected f32");
  }
  Var twice = record("twice", vector_of({1, 2}), {x}, [](Stream&, Tensor& grad_out, Grads& grads) {
    grads.give(0, grad_out);
    grads.give(0, grad_out);
  });
  EXPECT_THROW(twice.backward(), InternalError);
}

TEST_F(Autograd, RefusesToAddToAReducedGradient) {
  Var w(vector_of({2}), true);
  w.set_grad(vector_of({1}));  // the parameter's shape, not (shards, numel)
  Var loss = scale(input({1, 2}), w);
  try {
    loss.backward();
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[scale] gradient 1: shape (2,1), but (1) is there already");
    EXPECT_EQ(error.hint(), "call Optimizer::zero_grad() before backward()");
  }
}

// Writes down what it hears, and doubles the gradients of `w`.
struct Recorder : TapeListener {
  void on_result(const TapeOp& op, const Tensor& result) override {
    heard.push_back(fmt::format("{} {}", op.name, result.data<float>()[0]));
    numbers.push_back(op.number);
  }
  void on_gradient(const TapeOp& op, size_t i, Tensor& gradient) override {
    heard.push_back(fmt::format("{}' {}: {}", op.name, i, gradient.data<float>()[0]));
    numbers.push_back(op.number);
    if (op.inputs[i].identity() != w.identity()) return;
    for (float& value : gradient.span<float>()) value *= 2;
  }

  Var w;
  std::vector<std::string> heard;
  std::vector<uint64_t> numbers;
};

TEST_F(Autograd, AListenerHearsEachTensorInOrderAndMayChangeGradients) {
  Recorder recorder;
  recorder.w = Var(vector_of({3}), true);
  Var x = input({1, 2}, true, &recorder);
  float at_hook = 0;
  recorder.w.on_grad_ready([&](Var& w) { at_hook = w.grad().data<float>()[1]; });
  const Var y = scale(x, recorder.w);
  Var loss = sum(y, y);
  loss.backward();
  // The second gradient of y is what both uses sum to.
  EXPECT_EQ(
      recorder.heard,
      (std::vector<std::string>{"scale 3", "sum 6", "sum' 0: 1", "sum' 1: 2", "scale' 1: 2"}));
  EXPECT_EQ(values_of(recorder.w.grad()), (std::vector<float>{4, 8}));
  EXPECT_EQ(at_hook, 8) << "the hook comes after the listener";
  const std::vector<uint64_t>& numbers = recorder.numbers;
  EXPECT_EQ(numbers[0], numbers[4]);
  EXPECT_EQ(numbers[1], numbers[2]);
  EXPECT_NE(numbers[0], numbers[1]);
  EXPECT_EQ(recorder.w.identity(), Var(recorder.w).identity());
  EXPECT_NE(recorder.w.identity(), x.identity());
}

TEST_F(Autograd, NobodyListensToAnEvaluation) {
  Recorder recorder;
  recorder.w = Var(vector_of({3}), true);
  scale(input({1, 2}, false, &recorder), recorder.w);
  EXPECT_TRUE(recorder.heard.empty());
}

TEST_F(Autograd, OpsNeedABatch) {
  Var w(vector_of({2}), true);
  EXPECT_THROW(scale(w, w), InternalError);
}

}  // namespace
}  // namespace lockstep::autograd_test
