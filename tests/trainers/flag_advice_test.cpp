#include <sstream>

#include <gtest/gtest.h>

#include "trainers/options/flag_table.h"
#include "trainers/report/errors.h"

namespace lockstep::trainers::flag_advice_test {
namespace {

TEST(FlagAdvice, TheTrainersHaveFlagsForEveryRemedy) {
  EXPECT_EQ(trainer_advice(Remedy::kNone), "");
  for (int i = 1; i <= static_cast<int>(kLastRemedy); ++i) {
    std::istringstream words{std::string(trainer_advice(static_cast<Remedy>(i)))};
    int flags = 0;
    for (std::string word; words >> word;) {
      if (!word.starts_with('-')) continue;
      ++flags;
      EXPECT_NE(find_flag(word), nullptr) << word;
    }
    EXPECT_GT(flags, 0) << i;
  }
}

TEST(FlagAdvice, TheToolNamesItsOwnFlagsAlone) {
  EXPECT_NE(tool_advice(Remedy::kPlanFile).find("lockstep plan --plan-file"), std::string::npos);
  EXPECT_EQ(tool_advice(Remedy::kCpu), "");
}

}  // namespace
}  // namespace lockstep::trainers::flag_advice_test
