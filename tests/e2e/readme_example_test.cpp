// The C++ example of README.md must be examples/digits, which the test e2e.install builds and runs
// and whose accuracy it checks.
#include <algorithm>

#include "tests/e2e/training_runs.h"
#include "tests/support/golden.h"

namespace lockstep::testing::readme_example_test {
namespace {

TEST(ReadmeExample, IsTheDigitsExampleOfAtMost35Lines) {
  const std::filesystem::path root = golden_folder() / "../..";
  const std::string program = read_text(root / "examples/digits/main.cpp");
  EXPECT_NE(read_text(root / "README.md").find("```cpp\n" + program + "```\n"), std::string::npos);
  EXPECT_LE(std::ranges::count(program, '\n'), 35);
  EXPECT_GE(std::ranges::count(program, '\n'), 10);
}

}  // namespace
}  // namespace lockstep::testing::readme_example_test
