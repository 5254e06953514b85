#include "core/line_splitter.h"

#include <vector>

#include <gtest/gtest.h>

namespace lockstep::line_splitter_test {
namespace {

// A text gives the same lines wherever it is cut in two blocks.
TEST(LineSplitter, LinesMayGoOnInTheNextBlock) {
  const std::string text = "first\n\nthird\r\n\nrest";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    LineSplitter splitter;
    std::vector<std::string> lines;
    const auto take = [&](const std::string& line) { lines.push_back(line); };
    splitter.add(text.substr(0, cut), take);
    splitter.add(text.substr(cut), take);
    EXPECT_EQ(lines, (std::vector<std::string>{"first", "", "third\r", ""})) << cut;
    EXPECT_EQ(splitter.rest(), "rest") << cut;
  }
}

TEST(LineSplitter, AnEndLeavesNoRest) {
  LineSplitter splitter;
  int lines = 0;
  for (const char* block : {"a", "", "b", "\n"}) {
    splitter.add(block, [&](const std::string& line) {
      EXPECT_EQ(line, "ab");
      ++lines;
    });
  }
  EXPECT_EQ(lines, 1);
  EXPECT_EQ(splitter.rest(), "");
}

TEST(LineSplitter, KeepsOnlyTheBeginningOfALineThatIsTooLong) {
  LineSplitter splitter;
  std::vector<size_t> lines;
  const auto take = [&](const std::string& line) { lines.push_back(line.size()); };
  const std::string block(LineSplitter::kMaxLine - 1, 'x');
  for (int i = 0; i < 3; ++i) splitter.add(block, take);
  EXPECT_EQ(splitter.rest().size(), LineSplitter::kMaxLine);
  splitter.add("\nnext\n", take);
  EXPECT_EQ(lines, (std::vector<size_t>{LineSplitter::kMaxLine, 4}));
}

}  // namespace
}  // namespace lockstep::line_splitter_test
