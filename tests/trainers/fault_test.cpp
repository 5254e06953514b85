#include <chrono>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"
#include "trainers/debug/planted_fault.h"

namespace lockstep::trainers::fault_test {
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
  const auto disk = parse_fault("slowdisk:ms=30");
  ASSERT_TRUE(disk);
  EXPECT_TRUE(disk->slows_photos());
  EXPECT_EQ(disk->delay(), std::chrono::milliseconds(30));
  EXPECT_EQ(parse_fault("slowdecode:ms=1")->kind, "slowdecode");
  EXPECT_TRUE(disk->strikes(0) && disk->strikes(7));
  const auto of_one = parse_fault("slowdisk:ms=30,rank=1");
  ASSERT_TRUE(of_one);
  EXPECT_TRUE(of_one->strikes(1) && !of_one->strikes(0));
  for (const char* text : {"slownet:ms=5", "skip:rank=1,step=3", "lost:rank=0,step=3"}) {
    EXPECT_TRUE(parse_fault(text)->breaks_exchange()) << text;
  }
  EXPECT_FALSE(disk->breaks_exchange());
  EXPECT_EQ(parse_fault("loop:rank=1,step=4,layer=conv2")->layer, "conv2");
  const auto slow = parse_fault("slow:rank=2,ms=7");
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->kind, "slow");
  EXPECT_EQ(slow->rank, 2);
  EXPECT_EQ(slow->number, 7);
  EXPECT_FALSE(parse_fault(""));
  const auto inf = parse_fault("inf:rank=1,step=4");
  ASSERT_TRUE(inf);
  EXPECT_TRUE(inf->breaks_layer());
  EXPECT_FALSE(slow->breaks_layer());
  EXPECT_EQ(inf->count, 1);
  EXPECT_EQ(inf->layer, "");
  EXPECT_EQ(inf->value, std::numeric_limits<double>::infinity());
  const auto of_layer = parse_fault("inf:rank=1,step=4,count=3,layer=layer1.0.conv1,value=-1e5");
  ASSERT_TRUE(of_layer);
  EXPECT_EQ(of_layer->count, 3);
  EXPECT_EQ(of_layer->layer, "layer1.0.conv1");
  EXPECT_EQ(of_layer->value, -1e5);
}

TEST(Fault, OtherTextIsRefused) {
  for (const char* text : {"slow:rank=1,step=3",
                           "slowdisk:rank=0,ms=3",
                           "slownet:ms=3,rank=1",
                           "skip:rank=1,step=3,layer=fc",
                           "loop:rank=1,step=3,value=2",
                           "nan:rank=1,ms=3",
                           "slow:rank=1",
                           "melt:rank=0,step=1",
                           "kill:rank=-1,step=1",
                           "kill:rank=1,step=1,layer=fc",
                           "inf:rank=1,step=1,value=much",
                           "inf:rank=1,step=1,layer=",
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
}  // namespace lockstep::trainers::fault_test
