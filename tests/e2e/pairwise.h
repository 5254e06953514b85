// Tables of runs that combine options such that every two values of two options occur together in
// some row.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::testing {

using Factors = std::vector<std::string>;  // a row: one value per option

// `excused` are combinations that cannot exist: value a of factor i with value b of factor j > i.
using Excused = std::function<bool(size_t i, const std::string& a, size_t j, const std::string& b)>;

inline void expect_pairwise_cover(
    const std::vector<Factors>& rows,
    const Excused& excused = [](size_t, const auto&, size_t, const auto&) { return false; }) {
  const size_t factors = rows.front().size();
  for (size_t i = 0; i < factors; ++i) {
    for (size_t j = i + 1; j < factors; ++j) {
      std::set<std::string> left;
      std::set<std::string> right;
      std::set<std::pair<std::string, std::string>> met;
      for (const Factors& row : rows) {
        left.insert(row[i]);
        right.insert(row[j]);
        met.emplace(row[i], row[j]);
      }
      for (const std::string& a : left) {
        for (const std::string& b : right) {
          if (excused(i, a, j, b)) continue;
          EXPECT_TRUE(met.contains({a, b})) << a << " with " << b;
        }
      }
    }
  }
}

}  // namespace lockstep::testing
