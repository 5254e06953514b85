#include "trainers/options/spelling.h"

#include <array>

#include <gtest/gtest.h>

namespace lockstep::trainers::spelling_test {
namespace {

TEST(Spelling, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("lr", "rl"), 1);
  EXPECT_EQ(edit_distance("bacth-size", "batch-size"), 1);
}

TEST(Spelling, NearestWord) {
  constexpr std::array<std::string_view, 3> kWords = {"epochs", "batch-size", "lr"};
  EXPECT_EQ(nearest_word("epoch", kWords), "epochs");
  EXPECT_EQ(nearest_word("bach_size", kWords), "batch-size");
  EXPECT_EQ(nearest_word("batch", kWords), "batch-size");
  EXPECT_EQ(nearest_word("momentum", kWords), "");
  EXPECT_EQ(nearest_word("", kWords), "");
}

}  // namespace
}  // namespace lockstep::trainers::spelling_test
