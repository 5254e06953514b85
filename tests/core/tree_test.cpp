#include "core/tree.h"

#include <bit>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::tree_test {
namespace {

// The definition: the left subtree has the largest power of two below n.
std::string by_definition(int64_t first, int64_t n) {
  if (n == 1) return std::to_string(first);
  const auto left = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n - 1)));
  return "(" + by_definition(first, left) + " " + by_definition(first + left, n - left) + ")";
}

std::vector<std::string> leaves(int64_t n) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < n; ++i) names.push_back(std::to_string(i));
  return names;
}

void merge_into(std::vector<std::string>& nodes, int64_t into, int64_t from) {
  std::string& left = nodes[static_cast<size_t>(into)];
  std::string& right = nodes[static_cast<size_t>(from)];
  ASSERT_FALSE(right.empty()) << "a node is merged twice";
  left = "(" + left + " " + right + ")";
  right.clear();
}

TEST(Tree, IsTheRecursiveDefinition) {
  for (int64_t n = 1; n <= 70; ++n) {
    std::vector<std::string> nodes = leaves(n);
    for_each_tree_merge(n, [&](int64_t into, int64_t from) { merge_into(nodes, into, from); });
    EXPECT_EQ(nodes[0], by_definition(0, n));
  }
}

TEST(Tree, NoLeavesNoMerges) {
  for_each_tree_merge(0, [](int64_t, int64_t) { FAIL(); });
}

// What lets ranks continue the tree of their shards.
TEST(Tree, CompleteSubtreesMayBeMergedElsewhere) {
  for (const int64_t part : {1, 2, 4, 8}) {
    for (int64_t parts = 1; parts <= 9; ++parts) {
      const int64_t n = part * parts;
      std::vector<std::string> roots;
      for (int64_t p = 0; p < parts; ++p) {
        std::vector<std::string> all = leaves(n);
        std::vector<std::string> own(all.begin() + p * part, all.begin() + (p + 1) * part);
        for_each_tree_merge(part, [&](int64_t into, int64_t from) { merge_into(own, into, from); });
        roots.push_back(own[0]);
      }
      for_each_tree_merge(parts,
                          [&](int64_t into, int64_t from) { merge_into(roots, into, from); });
      EXPECT_EQ(roots[0], by_definition(0, n)) << parts << " parts of " << part;
    }
  }
}

}  // namespace
}  // namespace lockstep::tree_test
