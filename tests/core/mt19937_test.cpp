#include "core/mt19937.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/close.h"
#include "tests/support/golden.h"

namespace lockstep::mt19937_test {
namespace {

using testing::close;
using testing::golden_cases;
using testing::GoldenCase;
using Order = std::vector<int64_t>;

std::vector<GoldenCase> cases_of(const std::string& kind) {
  std::vector<GoldenCase> cases = golden_cases("rng");
  std::erase_if(cases, [&](const GoldenCase& golden) { return golden.text("kind") != kind; });
  return cases;
}

uint64_t seed_of(const GoldenCase& golden) {
  return static_cast<uint64_t>(golden.number("seed"));
}

TEST(Mt19937, DrawsAsPyTorchAndNumPy) {
  ASSERT_EQ(cases_of("mt19937").size(), 3U);
  for (const GoldenCase& golden : cases_of("mt19937")) {
    Mt19937 random(seed_of(golden));
    const Tensor want = golden.tensor("u32");
    for (const int64_t value : want.span<int64_t>()) ASSERT_EQ(random.next_u32(), value);
  }
}

TEST(Mt19937, UniformIsBitForBitPyTorch) {
  ASSERT_EQ(cases_of("rand").size(), 2U);
  for (const GoldenCase& golden : cases_of("rand")) {
    const Tensor want = golden.tensor("values");
    std::vector<float> got(static_cast<size_t>(want.numel()));
    Mt19937(seed_of(golden)).uniform(got, 0, 1);
    EXPECT_TRUE(close(got, want.span<float>(), {}));
  }
}

TEST(Mt19937, UniformScalesWithOneRounding) {
  const float bound = 1.0F / 5;  // a 5x5 kernel of one channel
  std::vector<float> got(3);
  Mt19937(42).uniform(got, -bound, bound);
  const std::vector<float> want = {.15290771F, .16600159F, -.04685450F};  // ConvNet's first weights
  EXPECT_TRUE(close(got, std::span<const float>(want), {.abs = 1e-8}));
}

// Small draws share a cached half pair; draws of 16 and more take blocks, the last one twice.
TEST(Mt19937, NormalIsCloseToPyTorch) {
  ASSERT_EQ(cases_of("randn").size(), 8U);
  for (const GoldenCase& golden : cases_of("randn")) {
    Mt19937 random(seed_of(golden));
    const Tensor want = golden.tensor("values");
    std::vector<float> got(static_cast<size_t>(want.numel()));
    size_t start = 0;
    for (int draw = 0; start < got.size(); ++draw) {
      const auto count = static_cast<size_t>(golden.number("counts/" + std::to_string(draw)));
      random.normal(std::span(got).subspan(start, count), 0, 1);
      start += count;
    }
    EXPECT_TRUE(close(got, want.span<float>(), {.abs = 1.8e-6})) << golden.name();
  }
}

TEST(Mt19937, NormalHasMeanAndDeviationAskedFor) {
  for (const size_t count : {5, 40}) {
    std::vector<float> standard(count);
    std::vector<float> scaled(count);
    Mt19937(7).normal(standard, 0, 1);
    Mt19937(7).normal(scaled, 3, 2);
    for (size_t i = 0; i < count; ++i) EXPECT_FLOAT_EQ(scaled[i], standard[i] * 2 + 3);
  }
}

TEST(Mt19937, RandpermIsPyTorchs) {
  ASSERT_EQ(cases_of("randperm").size(), 6U);
  for (const GoldenCase& golden : cases_of("randperm")) {
    const Tensor indices = golden.tensor("indices");
    const Order want(indices.span<int64_t>().begin(), indices.span<int64_t>().end());
    EXPECT_EQ(Mt19937(seed_of(golden)).randperm(static_cast<int64_t>(golden.number("n"))), want);
  }
  EXPECT_EQ(Mt19937(0).randperm(10), (Order{4, 1, 7, 5, 3, 9, 0, 8, 6, 2}));
}

TEST(Mt19937, RandpermOfFewAndOfTooMany) {
  EXPECT_EQ(Mt19937(0).randperm(0), Order{});
  EXPECT_EQ(Mt19937(0).randperm(1), Order{0});
  EXPECT_THROW((void)Mt19937(0).randperm(-1), InternalError);
  EXPECT_THROW((void)Mt19937(0).randperm(int64_t{0x100000000} / 20), InternalError);
}

TEST(Mt19937, RandpermHoldsEachIndexOnce) {
  Order order = Mt19937(3).randperm(60000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  Order want(60000);
  std::iota(want.begin(), want.end(), 0);
  EXPECT_EQ(order, want);
}

}  // namespace
}  // namespace lockstep::mt19937_test
