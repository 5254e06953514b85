// The C++ example of README.md: its text, that it learns, and the same bits on any number of ranks.
#include <algorithm>

#include "tests/e2e/training_runs.h"
#include "tests/support/golden.h"

namespace lockstep::testing::readme_example_test {
namespace {

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "no " + begin;
  const size_t first = from + begin.size();
  return text.substr(first, text.find(end, first) - first);
}

TEST(ReadmeExample, IsTheProgramThatIsTested) {
  const std::filesystem::path root = golden_folder() / "../..";
  EXPECT_EQ(between(read_text(root / "README.md"), "```cpp\n", "```\n"),
            between(read_text(root / "tests/docs/readme_example.cpp"),
                    "// README begins\n",
                    "// README ends\n"));
}

std::vector<double> losses(const std::string& text) {
  std::vector<double> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(" loss ");
    if (at != std::string::npos) found.push_back(std::stod(line.substr(at + 6)));
  }
  return found;
}

TEST(ReadmeExample, LearnsWithTheSameBitsOnOneTwoAndFourRanks) {
  const ProgramResult one = run_program({"readme_example"});
  ASSERT_EQ(one.exit_code, 0) << said(one);
  const std::vector<double> loss = losses(one.out);
  ASSERT_EQ(loss.size(), 100U) << one.out;
  EXPECT_GT(loss.front(), 1.5) << one.out;
  EXPECT_LT(*std::max_element(loss.end() - 10, loss.end()), loss.front() / 2) << one.out;
  for (const int ranks : {2, 4}) {
    const ProgramResult many = run_ranks(ranks, {"readme_example"});
    ASSERT_EQ(many.exit_code, 0) << said(many);
    EXPECT_EQ(many.out, one.out) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace lockstep::testing::readme_example_test
