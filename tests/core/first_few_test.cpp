#include "core/first_few.h"

#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::first_few_test {
namespace {

TEST(FirstFew, ListsAreWholeUpToALimitThenCounted) {
  EXPECT_EQ(first_few(std::vector<int>{}), "");
  EXPECT_EQ(first_few(std::vector<std::string>{"fc1", "fc2"}, "; "), "fc1; fc2");
  std::vector<int> ranks(kListedItems);
  std::iota(ranks.begin(), ranks.end(), 1);
  EXPECT_EQ(first_few(ranks), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12");
  ranks.resize(99999);
  EXPECT_EQ(first_few(ranks), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 99987 more");
}

}  // namespace
}  // namespace lockstep::first_few_test
