#include <gtest/gtest.h>
#include <omp.h>

#include "kernels/linear/linear.h"
#include "tests/support/poisoned_tensor.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::onednn_threads_test {
namespace {

// The calling thread is a program's own, which may use OpenMP itself.
TEST(OneDnnThreads, TheCallersOpenMpThreadsStayAsTheyWere) {
  omp_set_num_threads(3);
  Stream stream;
  const Tensor in = testing::random_tensor({4, 6}, 1);
  const Tensor weight = testing::random_tensor({5, 6}, 2);
  Tensor out = testing::poisoned_tensor({4, 5}, Dtype::kF32);
  linear_forward(stream, Shards::single(4), in, weight, {}, out);
  EXPECT_EQ(omp_get_max_threads(), 3);
  omp_set_num_threads(1);
}

}  // namespace
}  // namespace lockstep::kernels::onednn_threads_test
