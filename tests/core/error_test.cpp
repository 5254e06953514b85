#include "core/error.h"

#include <gtest/gtest.h>

namespace lockstep::error_test {
namespace {

class ErrorAdvice : public ::testing::Test {
 protected:
  void TearDown() override { set_remedy_text(nullptr); }
};

std::string_view flag_of(Remedy remedy) {
  return remedy == Remedy::kCpu ? "or --cpu" : "";
}

TEST_F(ErrorAdvice, IsTheHintWhereNoProgramSpeaks) {
  const DataError error("what", "why", "hint", Remedy::kCpu);
  EXPECT_EQ(error.remedy(), Remedy::kCpu);
  EXPECT_EQ(format_error(error), "lockstep: error: what\n  why: why\n  try: hint\n");
  EXPECT_EQ(format_error(DataError("what", {}, {}, Remedy::kCpu)), "lockstep: error: what\n");
}

TEST_F(ErrorAdvice, EndsWithTheProgramsTextForTheRemedy) {
  set_remedy_text(flag_of);
  EXPECT_EQ(format_error(DataError("what", "why", "hint", Remedy::kCpu)),
            "lockstep: error: what\n  why: why\n  try: hint; or --cpu\n");
  EXPECT_EQ(advice_of(DataError("what", {}, {}, Remedy::kCpu)), "or --cpu");
  EXPECT_EQ(advice_of(DataError("what", {}, "hint", Remedy::kCuda)), "hint");
  EXPECT_EQ(advice_of(DataError("what", {}, "hint")), "hint");
}

}  // namespace
}  // namespace lockstep::error_test
