#include "trainers/loop/fault.h"

#include <chrono>

#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"

namespace lockstep::trainers {
namespace {

double seconds_of_delay(const std::optional<Fault>& fault, int rank) {
  const auto start = std::chrono::steady_clock::now();
  delay(fault, rank);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Fault, IsReadFromText) {
  const auto flip = parse_fault("flipbit:rank=1,step=30");
  ASSERT_TRUE(flip);
  EXPECT_EQ(flip->kind, "flipbit");
  EXPECT_EQ(flip->rank, 1);
  EXPECT_EQ(flip->number, 30);
  const auto slow = parse_fault("slow:rank=2,ms=7");
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->kind, "slow");
  EXPECT_EQ(slow->rank, 2);
  EXPECT_EQ(slow->number, 7);
  EXPECT_FALSE(parse_fault(""));
}

TEST(Fault, OtherTextIsRefused) {
  for (const char* text : {"slow:rank=1,step=3",
                           "nan:rank=1,ms=3",
                           "slow:rank=1",
                           "melt:rank=0,step=1",
                           "kill:rank=-1,step=1",
                           "slow:rank=1,ms=30 "}) {
    const auto error = testing::usage_error([&] { parse_fault(text); });
    ASSERT_TRUE(error) << text;
    EXPECT_EQ(error->what(), fmt::format("LOCKSTEP_FAULT is '{}'", text));
  }
}

TEST(Fault, SlowDelaysItsRankOnly) {
  const auto slow = parse_fault("slow:rank=1,ms=20");
  EXPECT_GE(seconds_of_delay(slow, 1), 0.02);
  EXPECT_LT(seconds_of_delay(slow, 0), 0.01);
  EXPECT_LT(seconds_of_delay(parse_fault("kill:rank=1,step=20"), 1), 0.01);
  EXPECT_LT(seconds_of_delay(std::nullopt, 1), 0.01);
}

}  // namespace
}  // namespace lockstep::trainers
