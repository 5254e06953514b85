// Where gradients lie, and who adds them up.
#include "tests/support/tape_ops.h"

namespace lockstep::gradient_memory_test {
namespace {

using testing::Autograd;
using testing::scale;
using testing::sum;
using testing::values_of;
using testing::vector_of;

class GradientMemory : public Autograd {};

// One leaf goes where the caller wants it, whichever op adds to it.
TEST_F(GradientMemory, ALeafOfOneShardIsWrittenWhereItBelongs) {
  Var w(vector_of({3}), true);
  Tensor memory = vector_of({-1});
  w.set_grad_memory(memory);
  for (const float image : {2.0F, 5.0F}) {
    scale(input({image}), w).backward();
    EXPECT_EQ(w.grad().bytes(), memory.bytes());
    EXPECT_EQ(w.grad().shape(), (Shape{1, 1}));
    EXPECT_TRUE(w.grad_is_in_memory());
    EXPECT_EQ(values_of(memory), (std::vector<float>{image}));
    w.set_grad({});
    EXPECT_FALSE(w.grad_is_in_memory());
  }
  const Var y = scale(input({2}), w);
  scale(y, w).backward();  // 2w^2
  EXPECT_EQ(w.grad().bytes(), memory.bytes());
  EXPECT_EQ(values_of(memory), (std::vector<float>{12}));
}

TEST_F(GradientMemory, AnOpThatUsesAParameterTwiceHasItsMemoryOnce) {
  Var w(vector_of({3}), true);
  w.set_grad_memory(vector_of({-1}));
  const Var x = input({2});
  const Var both =
      record("twice", vector_of({0}), {x, w, w}, [](Stream&, const Tensor&, Grads& grads) {
        *grads.overwrite(1).data<float>() = 5;
        *grads.overwrite(2).data<float>() = 7;
      });
  Var loss = both;
  loss.backward();
  EXPECT_EQ(values_of(w.grad()), (std::vector<float>{12}));
}

TEST_F(GradientMemory, SeveralLeavesAndLaterAdditionsHaveMemoryOfTheirOwn) {
  Var w(vector_of({3}), true);
  const Tensor memory = vector_of({-1});
  w.set_grad_memory(memory);
  scale(input({1, 2}), w).backward();
  EXPECT_NE(w.grad().bytes(), memory.bytes());
  EXPECT_FALSE(w.grad_is_in_memory());
  w.set_grad(vector_of({10}).view({1, 1}));
  scale(input({2}), w).backward();
  EXPECT_FALSE(w.grad_is_in_memory());
  EXPECT_EQ(values_of(w.grad()), (std::vector<float>{12}));
  EXPECT_EQ(values_of(memory), (std::vector<float>{-1}));
  EXPECT_THROW(w.set_grad_memory(vector_of({1, 2})), InternalError);
}

// out = x, in whose backward pass all gradients but the last have been added up.
Var meeting_point(const Var& x, std::vector<float>& grad_outs, std::vector<float>& addends) {
  const auto backward = [&](Stream&, Tensor& grad_out, Grads& grads) {
    grad_outs = values_of(grad_out);
    addends = grads.addend().defined() ? values_of(grads.addend()) : std::vector<float>();
    grads.overwrite(0).data<float>()[0] = 0;
  };
  return record("meeting_point", vector_of({1}), {x}, backward, {.adds = true});
}

TEST_F(GradientMemory, AnOpThatAddsGetsTheLastGradientApart) {
  Var x = input({2});
  x.set_requires_grad(true);
  Var one(vector_of({1}), false), ten(vector_of({10}), false), hundred(vector_of({100}), false);
  std::vector<float> grad_outs, addends;
  Var meeting = meeting_point(x, grad_outs, addends);
  Var(scale(meeting, one)).backward();
  EXPECT_EQ(grad_outs, (std::vector<float>{1}));
  EXPECT_TRUE(addends.empty());

  meeting = meeting_point(x, grad_outs, addends);
  const Var first = scale(meeting, hundred), second = scale(meeting, ten);
  Var(sum(sum(scale(meeting, one), second), first)).backward();  // back from the youngest
  EXPECT_EQ(grad_outs, (std::vector<float>{11}));
  EXPECT_EQ(addends, (std::vector<float>{100}));
}

struct LastOfSum : TapeListener {
  void on_result(const TapeOp& /*op*/, const Tensor& /*result*/) override {}
  void on_gradient(const TapeOp& op, size_t /*i*/, Tensor& gradient) override {
    if (op.name == "sum") last = gradient.data<float>()[0];
  }
  float last = 0;
};

TEST_F(GradientMemory, AListenerHearsTheWholeGradientOfAnOpThatAdds) {
  LastOfSum listener;
  Var x = input({2}, true, &listener);
  x.set_requires_grad(true);
  std::vector<float> grad_outs, addends;
  const Var meeting = meeting_point(x, grad_outs, addends);
  Var(sum(meeting, meeting)).backward();
  EXPECT_EQ(grad_outs, (std::vector<float>{2}));
  EXPECT_TRUE(addends.empty());
  EXPECT_EQ(listener.last, 2);
}

}  // namespace
}  // namespace lockstep::gradient_memory_test
