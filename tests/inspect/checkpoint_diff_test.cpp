#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "inspect/weights/checkpoint_reports.h"

namespace lockstep::trainers::checkpoint_diff_test {
namespace {

template <class T>
Tensor tensor_of(const Shape& shape, std::initializer_list<T> values) {
  Tensor tensor = Tensor::empty(shape, DtypeOf<T>::kValue);
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}

// The single line of a diff between two checkpoints that hold one tensor each.
std::string line(const Tensor& a, const Tensor& b) {
  const CheckpointDiff diff = diff_checkpoints({.tensors = {{"t", a}}, .metadata = {}},
                                               {.tensors = {{"t", b}}, .metadata = {}});
  return diff.same() ? "same" : diff.differing.at(0);
}

TEST(CheckpointDiff, SameBitsAreTheSame) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(line(tensor_of<float>({3}, {1, kNan, -0.0F}), tensor_of<float>({3}, {1, kNan, -0.0F})),
            "same");
  EXPECT_EQ(line(tensor_of<float>({0}, {}), tensor_of<float>({0}, {})), "same");
  EXPECT_TRUE(diff_checkpoints({}, {}).same());
}

TEST(CheckpointDiff, NamesPlaceValuesDistanceAndCount) {
  const Tensor a = tensor_of<float>({2, 1, 1, 3}, {0, 1, 2, 3, 4, 5});
  const Tensor b = tensor_of<float>({2, 1, 1, 3}, {0, 1, 2, 3.5F, 4, 3});
  EXPECT_EQ(line(a, b), "t: 2 of 6 elements differ, first at [1,0,0,0]: 3 and 3.5; max abs diff 2");
}

TEST(CheckpointDiff, EveryDtypeIsCompared) {
  EXPECT_EQ(line(tensor_of<Half>({}, {Half(1)}), tensor_of<Half>({}, {Half(2)})),
            "t: 1 of 1 elements differ, first at []: 1 and 2; max abs diff 1");
  EXPECT_EQ(line(tensor_of<BFloat16>({1}, {BFloat16(1)}), tensor_of<BFloat16>({1}, {BFloat16(-1)})),
            "t: 1 of 1 elements differ, first at [0]: 1 and -1; max abs diff 2");
  EXPECT_EQ(line(tensor_of<uint8_t>({1}, {3}), tensor_of<uint8_t>({1}, {255})),
            "t: 1 of 1 elements differ, first at [0]: 3 and 255; max abs diff 252");
  EXPECT_EQ(line(tensor_of<int32_t>({1}, {INT32_MIN}), tensor_of<int32_t>({1}, {INT32_MAX})),
            "t: 1 of 1 elements differ, first at [0]: -2147483648 and 2147483647; "
            "max abs diff 4.29497e+09");
  constexpr int64_t kBig = int64_t{1} << 60;
  EXPECT_EQ(line(tensor_of<int64_t>({1}, {kBig}), tensor_of<int64_t>({1}, {kBig + 1})),
            "t: 1 of 1 elements differ, first at [0]: 1152921504606846976 and "
            "1152921504606846977; max abs diff 1");
}

TEST(CheckpointDiff, ZeroesAndNansDifferByTheirBits) {
  EXPECT_EQ(line(tensor_of<float>({1}, {0.0F}), tensor_of<float>({1}, {-0.0F})),
            "t: 1 of 1 elements differ, first at [0]: 0 and -0; max abs diff 0");
  const auto nan = std::bit_cast<float>(0x7fc00000U);
  const auto other = std::bit_cast<float>(0x7fc00001U);
  EXPECT_EQ(line(tensor_of<float>({2}, {nan, 1}), tensor_of<float>({2}, {other, 9})),
            "t: 2 of 2 elements differ, first at [0]: 0x7fc00000 and 0x7fc00001; max abs diff nan");
}

TEST(CheckpointDiff, DtypeAndShapeComeBeforeElements) {
  EXPECT_EQ(line(tensor_of<float>({1}, {1}), tensor_of<int32_t>({1}, {1})), "t: dtype f32 and i32");
  EXPECT_EQ(line(tensor_of<float>({2, 1}, {1, 2}), tensor_of<float>({1, 2}, {1, 2})),
            "t: shape (2,1) and (1,2)");
}

TEST(CheckpointDiff, NamesOnOneSideAreListedInOrder) {
  const Tensor one = tensor_of<float>({1}, {1});
  const Safetensors a{.tensors = {{"a", one}, {"c", one}, {"d", one}}, .metadata = {}};
  const Safetensors b{.tensors = {{"b", one}, {"c", one}, {"e", one}}, .metadata = {}};
  const CheckpointDiff diff = diff_checkpoints(a, b);
  EXPECT_EQ(diff.tensors, 5);
  EXPECT_EQ(diff.differing,
            (std::vector<std::string>{"a: only in the first",
                                      "b: only in the second",
                                      "d: only in the first",
                                      "e: only in the second"}));
}

TEST(CheckpointDiff, MetadataIsReportedAndDoesNotCount) {
  const CheckpointDiff diff =
      diff_checkpoints({.tensors = {}, .metadata = {{"epoch", "1"}, {"same", "x"}}},
                       {.tensors = {}, .metadata = {{"epoch", "2\n"}, {"same", "x"}, {"z", ""}}});
  EXPECT_TRUE(diff.same());
  EXPECT_EQ(diff.metadata,
            (std::vector<std::string>{R"(epoch: "1" and "2\x0a")", R"(z: (none) and "")"}));
}

TEST(CheckpointDiff, TheReportIsCutAtTheLimit) {
  CheckpointDiff diff{.tensors = 7, .differing = {"a: x", "b: x", "c: x"}, .metadata = {"k: v"}};
  EXPECT_EQ(format_diff(diff, 2),
            "3 of 7 tensors differ\n  a: x\n  b: x\n  ... and 1 more\n"
            "metadata differs in 1 keys (this does not count)\n  k: v\n");
  EXPECT_EQ(format_diff({.tensors = 2, .differing = {}, .metadata = {}}, 2),
            "same bits in all 2 tensors\n");
}

}  // namespace
}  // namespace lockstep::trainers::checkpoint_diff_test
