#include "kernels/optim/loss_scale.h"

#include <limits>
#include <vector>

#include "tests/support/cuda_test.h"
#include "tests/support/float_types.h"
#include "tests/support/loss_scale_cases.h"
#include "tests/support/random_tensor.h"

namespace lockstep::kernels::loss_scale_test {
namespace {

using testing::expect_trace;
using testing::golden_cases;
using testing::GoldenCase;
using testing::kFloatTypes;
using testing::loss_scale_state;
using testing::random_tensor;
using testing::rounded_to;

class CudaLossScale : public testing::CudaTest {
 protected:
  bool found(const std::vector<Tensor>& buckets) {
    Tensor state = loss_scale_state(stream_);
    check_finite(stream_, buckets, state);
    return read_loss_scale(stream_, state).found_inf != 0;
  }
};

TEST_F(CudaLossScale, FollowsPyTorchStepByStep) {
  for (const GoldenCase& golden : golden_cases("loss_scale")) {
    SCOPED_TRACE(golden.name());
    testing::ScaledTraining(stream_, golden).expect_pytorch();
  }
}

TEST_F(CudaLossScale, FollowsItsRule) {
  const std::vector<int> bad_steps = {0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 0};
  expect_trace(stream_, {.growth_interval = 2}, 65536, bad_steps);
  expect_trace(stream_, {.dynamic = false, .growth_interval = 1}, 128, bad_steps);
  expect_trace(stream_, {.growth_interval = 1}, 0x1p127F, {0, 0, 1, 0});
  expect_trace(stream_, {.growth_interval = 1, .min_scale = 3}, 5, {1, 1, 0, 1});
}

TEST_F(CudaLossScale, SeedsEveryLeaf) {
  for (const int64_t leaves : {0, 1, 300}) {
    Tensor seeds = poisoned({leaves}, Dtype::kF32);
    loss_scale_seed(stream_, loss_scale_state(stream_, {.scale = 3}), seeds);
    const Tensor got = download(seeds);  // a loop over a temporary's span would outlive it
    for (const float seed : got.span<float>()) EXPECT_EQ(seed, 3);
  }
}

TEST_F(CudaLossScale, FindsOneElementWhereverItIs) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Dtype dtype : kFloatTypes) {
    for (const int64_t length : {1, 17, 16395}) {  // 11 elements in the second chunk
      Tensor bucket = rounded_to(dtype, random_tensor({length}, 1));
      const std::vector<Tensor> others = {upload(Tensor::zeros({3}, dtype)),
                                          Tensor::empty({0}, dtype, Device::kCuda)};
      EXPECT_FALSE(found({others[0], upload(bucket), others[1]}));
      EXPECT_FALSE(found({upload_misaligned(bucket)}));
      for (const int64_t at : {int64_t{0}, length / 2, length - 2, length - 1}) {
        if (at < 0) continue;
        for (const float bad : {kInf, -kInf, kNan, -kNan}) {
          const double good = testing::get(bucket, at);
          testing::set(bucket, at, bad);
          EXPECT_TRUE(found({others[0], upload(bucket), others[1]})) << name_of(dtype) << at;
          EXPECT_TRUE(found({upload_misaligned(bucket)})) << name_of(dtype) << at;
          testing::set(bucket, at, good);
        }
      }
    }
  }
}

TEST_F(CudaLossScale, TakesTheLargestAndTheSmallestForFinite) {
  for (const Dtype dtype : kFloatTypes) {
    const double largest = dtype == Dtype::kF16    ? 65504
                           : dtype == Dtype::kBF16 ? 0x1.fep127
                                                   : std::numeric_limits<float>::max();
    const std::vector<double> values = {largest, -largest, 0, -0.0, 0x1p-24, -0x1p-126, 1, 2};
    EXPECT_FALSE(found({upload(testing::tensor_of(values, {8}, dtype))}));
  }
}

TEST_F(CudaLossScale, FindsTheOneAmongMoreBucketsThanATableHolds) {
  std::vector<Tensor> buckets;
  for (int i = 0; i < 300; ++i) buckets.push_back(upload(Tensor::zeros({2}, Dtype::kBF16)));
  EXPECT_FALSE(found(buckets));
  Tensor bad = Tensor::zeros({2}, Dtype::kBF16);
  testing::set(bad, 1, std::numeric_limits<float>::infinity());
  for (const size_t at : {0U, 150U, 299U}) {
    std::vector<Tensor> spoiled = buckets;
    spoiled[at] = upload(bad);
    EXPECT_TRUE(found(spoiled)) << at;
  }
}

TEST_F(CudaLossScale, NoBucketsLeaveAFlagThatIsSet) {
  Tensor state = loss_scale_state(stream_, 1, 0, true);
  check_finite(stream_, {}, state);
  EXPECT_EQ(read_loss_scale(stream_, state).found_inf, 1);
}

}  // namespace
}  // namespace lockstep::kernels::loss_scale_test
