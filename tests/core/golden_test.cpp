#include "tests/support/golden.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace lockstep::testing::golden_test {
namespace {

TEST(Golden, EveryFileLoadsAndEveryCaseHasTensors) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    if (entry.path().extension() != ".safetensors") continue;
    ++files;
    const std::string name = entry.path().stem().string();
    const Safetensors& file = golden_file(name);
    for (const GoldenCase& golden : golden_cases(name)) {
      const std::string prefix = golden.name() + ".";
      const auto first = file.tensors.lower_bound(prefix);
      EXPECT_TRUE(first != file.tensors.end() && first->first.starts_with(prefix))
          << name << ": " << prefix;
    }
  }
  EXPECT_GT(files, 0);
}

TEST(Golden, ParametersReachIntoArraysAndObjects) {
  const GoldenCase sgd = golden_cases("sgd").front();
  EXPECT_EQ(sgd.number("lr/1"), 0.1);
  EXPECT_EQ(sgd.number("nesterov"), 0.0);
  const GoldenCase model = golden_cases("models").front();
  EXPECT_EQ(model.number("sgd/lr"), 1e-4);
  EXPECT_EQ(model.text("model"), "ConvNet");
}

TEST(Golden, RankFourIsChannelsLast) {
  const GoldenCase pool = golden_cases("max_pool2d").front();
  const Tensor input = pool.tensor("input");
  const Tensor in_file = golden_file("max_pool2d").tensors.at(pool.name() + ".input");
  ASSERT_EQ(input.shape(), Shape({2, 3, 6, 4}));
  EXPECT_EQ(input.data<float>()[1], in_file.data<float>()[24]);
}

TEST(Golden, WhatIsMissingThrows) {
  const GoldenCase pool = golden_cases("max_pool2d").front();
  EXPECT_FALSE(pool.has("weight"));
  EXPECT_ANY_THROW((void)pool.tensor("weight"));
  EXPECT_ANY_THROW((void)pool.number("weight"));
}

}  // namespace
}  // namespace lockstep::testing::golden_test
