#include "kernels/optim/loss_scale.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/float_types.h"
#include "tests/support/isa_bodies.h"
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
using testing::values_of;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(LossScale, FollowsPyTorchStepByStep) {
  Stream stream(Device::kCpu, 2);
  for (const GoldenCase& golden : golden_cases("loss_scale")) {
    SCOPED_TRACE(golden.name());
    testing::ScaledTraining(stream, golden).expect_pytorch();
  }
}

TEST(LossScale, FollowsItsRule) {
  Stream stream;
  const std::vector<int> bad_steps = {0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0};
  expect_trace(stream, {}, 65536, bad_steps);
  expect_trace(stream, {.growth_interval = 2}, 65536, bad_steps);
  expect_trace(stream, {.dynamic = false, .growth_interval = 1}, 128, bad_steps);
  expect_trace(stream, {.growth_interval = 1}, 0x1p127F, {0, 0, 0, 1, 0, 0});
  expect_trace(stream, {.growth_interval = 3}, 4, {1, 1, 1, 1, 0, 0, 0, 1, 1, 1});
  expect_trace(stream, {.growth_interval = 1, .min_scale = 3}, 5, {1, 1, 0, 1});
}

TEST(LossScale, SeedsEveryLeaf) {
  Stream stream;
  for (const int64_t leaves : {0, 1, 300}) {
    Tensor seeds = Tensor::zeros({leaves}, Dtype::kF32);
    loss_scale_seed(stream, loss_scale_state(stream, {.scale = 3}), seeds);
    for (const float seed : seeds.span<float>()) EXPECT_EQ(seed, 3);
  }
}

TEST(LossScale, ReadsWhatWasWritten) {
  Stream stream;
  const LossScaleState state = {.scale = 3,
                                .growth_tracker = 4,
                                .found_inf = 1,
                                .consecutive_skips = 5,
                                .applied = int64_t{6} << 33,
                                .skipped = 7};
  const LossScaleState read = read_loss_scale(stream, loss_scale_state(stream, state));
  EXPECT_EQ(std::memcmp(&read, &state, sizeof(state)), 0);
}

bool found(Stream& stream, const std::vector<Tensor>& buckets) {
  Tensor state = loss_scale_state(stream);
  check_finite(stream, buckets, state);
  return read_loss_scale(stream, state).found_inf != 0;
}

TEST(CheckFinite, FindsOneElementWhereverItIs) {
  for (const Dtype dtype : kFloatTypes) {
    for (const int threads : {1, 3}) {
      Stream stream(Device::kCpu, threads);
      const std::vector<Tensor> buckets = {rounded_to(dtype, random_tensor({40001}, 1)),
                                           Tensor::zeros({0}, dtype),
                                           rounded_to(dtype, random_tensor({17}, 2))};
      EXPECT_FALSE(found(stream, buckets));
      for (const size_t bucket : {0U, 2U}) {
        const int64_t last = buckets[bucket].numel() - 1;
        for (const int64_t at : {int64_t{0}, last / 2, last - 1, last}) {
          for (const float bad : {kInf, -kInf, kNan, -kNan}) {
            std::vector<Tensor> spoiled = buckets;
            spoiled[bucket] = rounded_to(dtype, buckets[bucket]);
            testing::set(spoiled[bucket], at, bad);
            EXPECT_TRUE(found(stream, spoiled)) << name_of(dtype) << " at " << at;
          }
        }
      }
    }
  }
}

TEST(CheckFinite, TakesTheLargestAndTheSmallestForFinite) {
  Stream stream;
  for (const Dtype dtype : kFloatTypes) {
    const double largest = dtype == Dtype::kF16    ? 65504
                           : dtype == Dtype::kBF16 ? 0x1.fep127
                                                   : std::numeric_limits<float>::max();
    const std::vector<double> values = {largest, -largest, 0, -0.0, 0x1p-24, -0x1p-126, 1};
    EXPECT_TRUE(reference::all_finite(values));
    EXPECT_FALSE(found(stream, {testing::tensor_of(values, {7}, dtype)}));
  }
}

TEST(CheckFinite, LeavesAFlagThatIsSet) {
  Stream stream;
  Tensor state = loss_scale_state(stream, 1, 0, true);
  const Tensor zeros = Tensor::zeros({5}, Dtype::kF32);
  check_finite(stream, {&zeros, 1}, state);
  EXPECT_EQ(read_loss_scale(stream, state).found_inf, 1);
}

TEST(LossScale, InstructionSetsAgree) {
  Stream stream;
  Tensor bucket = rounded_to(Dtype::kF16, random_tensor({301}, 1));
  testing::set(bucket, 300, kInf);
  for (CheckFinite* body : LS_ISA_BODIES(check_finite)) {
    Tensor state = loss_scale_state(stream);
    body(stream, {&bucket, 1}, state);
    EXPECT_EQ(read_loss_scale(stream, state).found_inf, 1);
  }
  for (LossScaleUpdate* body : LS_ISA_BODIES(loss_scale_update)) {
    Tensor state = loss_scale_state(stream, 1000, 0, true);
    body(stream, {.backoff_factor = 0.3}, state);
    EXPECT_EQ(read_loss_scale(stream, state).scale, static_cast<float>(1000 * 0.3));
  }
}

TEST(LossScale, RejectsBadArguments) {
  Stream stream;
  Tensor state = loss_scale_state(stream);
  Tensor short_state = Tensor::zeros({8}, Dtype::kU8);
  Tensor floats = Tensor::zeros({kLossScaleStateBytes}, Dtype::kF32);
  EXPECT_THROW(loss_scale_init(stream, {}, short_state), ShapeError);
  EXPECT_THROW(loss_scale_update(stream, {}, floats), DtypeError);
  EXPECT_THROW(read_loss_scale(stream, short_state), ShapeError);
  const Tensor bytes = Tensor::zeros({3}, Dtype::kU8);
  EXPECT_THROW(check_finite(stream, {&bytes, 1}, state), DtypeError);
  EXPECT_THROW(check_finite(stream, {&floats, 1}, short_state), ShapeError);
  EXPECT_THROW(loss_scale_update(stream, {.growth_factor = 1}, state), ShapeError);
  EXPECT_THROW(loss_scale_update(stream, {.backoff_factor = 1}, state), ShapeError);
  EXPECT_THROW(loss_scale_update(stream, {.backoff_factor = 0}, state), ShapeError);
  try {
    loss_scale_update(stream, {.growth_interval = 0}, state);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[loss_scale_update] required: growth_interval >= 1");
  }
}

TEST(LossScale, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  Tensor state = Tensor::empty({kLossScaleStateBytes}, Dtype::kU8, Device::kDry);
  const std::vector<Tensor> buckets = {Tensor::empty({10}, Dtype::kF32, Device::kDry),
                                       Tensor::empty({10}, Dtype::kF16, Device::kDry)};
  check_finite(stream, buckets, state);
  loss_scale_update(stream, {}, state);
  ASSERT_EQ(stream.ledger().size(), 2U);
  EXPECT_EQ(stream.ledger()[0].op, "check_finite");
  EXPECT_EQ(stream.ledger()[0].bytes, 60);
  EXPECT_EQ(stream.ledger()[1].op, "loss_scale_update");
}

}  // namespace
}  // namespace lockstep::kernels::loss_scale_test
