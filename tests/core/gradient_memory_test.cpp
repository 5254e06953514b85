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

}  // namespace
}  // namespace lockstep::gradient_memory_test
