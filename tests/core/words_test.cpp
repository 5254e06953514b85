#include "core/words.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::words_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Words, AreSplitAtTheSeparator) {
  EXPECT_THAT(split_words("a|bc", '|'), ElementsAre("a", "bc"));
  EXPECT_THAT(split_words("a||b", '|'), ElementsAre("a", "", "b"));
  EXPECT_THAT(split_words("", '|'), IsEmpty());
}

TEST(Words, AreNumbersAsAWholeOrNotAtAll) {
  EXPECT_EQ(parse_int("-3"), -3);
  EXPECT_EQ(parse_float(".5"), 0.5);
  EXPECT_EQ(parse_bool("True"), true);
  EXPECT_EQ(parse_bool("0"), false);
  for (const char* text : {"", " 1", "1 ", "1x", "nan", "inf", "99999999999999999999"}) {
    EXPECT_FALSE(parse_int(text)) << text;
    EXPECT_FALSE(parse_bool(text)) << text;
  }
  for (const char* text : {"", "1 ", "nan", "-inf", "1e400"}) EXPECT_FALSE(parse_float(text));
}

TEST(Words, ATerminalGetsNothingThatItActsOn) {
  EXPECT_EQ(without_controls("caf\u00e9\t\u4e2d\n"), "caf\u00e9\t\u4e2d\n");
  EXPECT_EQ(without_controls("\x1b[31m\r\x7f"), "\\x1b[31m\\x0d\\x7f");
  EXPECT_EQ(without_controls("\u009b31m\xff"), "\\xc2\\x9b31m\\xff");
  for (const char* mark :
       {"\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2028", "\u2066", "\u2069"}) {
    EXPECT_EQ(without_controls(mark).find("\\x"), 0U) << printable(mark);
  }
}

TEST(Words, NearestWord) {
  constexpr std::array<std::string_view, 3> kWords = {"epochs", "batch-size", "lr"};
  EXPECT_EQ(nearest_word("epoch", kWords), "epochs");
  EXPECT_EQ(nearest_word("bach_size", kWords), "batch-size");
  EXPECT_EQ(nearest_word("bacth-size", kWords), "batch-size");
  EXPECT_EQ(nearest_word("batch", kWords), "batch-size");
  EXPECT_EQ(nearest_word("rl", kWords), "lr");
  EXPECT_EQ(nearest_word("Batch_", kWords), "batch-size");
  EXPECT_EQ(nearest_word("momentum", kWords), "");
  EXPECT_EQ(nearest_word("", kWords), "");
  EXPECT_EQ(nearest_word("--e", kWords), "");
}

}  // namespace
}  // namespace lockstep::words_test
