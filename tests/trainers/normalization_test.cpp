#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/augmentation_config.h"

namespace lockstep::trainers::normalization_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(NormalizeFlag, SaysWhoseConstants) {
  EXPECT_FALSE(parse_normalize("dataset"));
  EXPECT_THAT(parse_normalize("none")->mean, IsEmpty());
  const kernels::NormalizeImageParams one = *parse_normalize("0.1307,0.3081");
  EXPECT_THAT(one.mean, ElementsAre(0.1307F));
  EXPECT_THAT(one.std, ElementsAre(0.3081F));
  const kernels::NormalizeImageParams three = *parse_normalize("0,-0.5,1e-3,1,2,0.25");
  EXPECT_THAT(three.mean, ElementsAre(0.0F, -0.5F, 1e-3F));
  EXPECT_THAT(three.std, ElementsAre(1.0F, 2.0F, 0.25F));
}

TEST(NormalizeFlag, GivesTheSameFloatsWhenReadBack) {
  using Limits = std::numeric_limits<float>;
  for (const float value : {0.1F, 1.0F / 3, 0.30810001F, Limits::min(), Limits::max()}) {
    const kernels::NormalizeImageParams params{.mean = {-value}, .std = {value}};
    const kernels::NormalizeImageParams back = *parse_normalize(normalize_text(params));
    EXPECT_EQ(back.mean, params.mean);
    EXPECT_EQ(back.std, params.std);
  }
  EXPECT_EQ(normalize_text({}), "none");
  EXPECT_EQ(normalize_text(*parse_normalize("0.1307,0.3081")), "0.1307,0.3081");
}

TEST(NormalizeFlag, RefusesWhatIsNoMeanAndDeviation) {
  const auto why = [](const std::string& text) {
    const auto error = testing::usage_error([&] { parse_normalize(text); });
    if (!error) return std::string("accepted");
    EXPECT_EQ(error->what(), "bad value: --normalize " + text);
    EXPECT_THAT(error->hint(), HasSubstr("--normalize dataset, none, "));
    return error->why();
  };
  for (const char* text : {"0.5", "0.5,", "1,2,3", "1,2,3,4,5,6,7"}) {
    EXPECT_THAT(why(text), HasSubstr("a mean and a deviation, or three means")) << text;
  }
  for (const char* text : {"nan,1", "0,inf", "0.5,one", "1e39,1", "0.5, 0.5", "imagenet"}) {
    EXPECT_THAT(why(text), HasSubstr("' is not a finite 32-bit number")) << text;
  }
  for (const char* text : {"0.5,0", "0.5,-1", "0,0,0,1,1,0"}) {
    EXPECT_THAT(why(text), HasSubstr("each is above 0")) << text;
  }
}

}  // namespace
}  // namespace lockstep::trainers::normalization_test
