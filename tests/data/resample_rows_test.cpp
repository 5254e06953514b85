#include "data/resample_rows.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::data::resample_rows_test {
namespace {

struct Case {
  int64_t in, out, first, count;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.in << "To" << c.out << "From" << c.first << "Count" << c.count;
}

class ResampleRows : public ::testing::TestWithParam<Case> {};

std::vector<uint8_t> exact(const ResampleWeights& columns, const std::vector<uint8_t>& row) {
  std::vector<uint8_t> results;
  for (int64_t i = 0; i < columns.size(); ++i) {
    for (int64_t color = 0; color < 3; ++color) {
      int64_t sum = int64_t{1} << (ResampleWeights::kFractionBits - 1);
      for (int64_t k = 0; k < columns.part(i).count; ++k) {
        const int64_t at = (columns.part(i).begin + k) * 3 + color;
        sum += int64_t{columns.of(i)[k]} * row[static_cast<size_t>(at)];
      }
      results.push_back(
          static_cast<uint8_t>(std::clamp<int64_t>(sum >> ResampleWeights::kFractionBits, 0, 255)));
    }
  }
  return results;
}

std::vector<uint8_t> mirrored(const std::vector<uint8_t>& row) {
  std::vector<uint8_t> result;
  for (size_t at = row.size(); at > 0; at -= 3) {
    result.insert(result.end(), {row[at - 3], row[at - 2], row[at - 1]});
  }
  return result;
}

// White rows too: their sums are the largest. `slack` bytes follow that the row may look at.
TEST_P(ResampleRows, EveryProcessorGivesTheExactSums) {
  const Case& c = GetParam();
  const ResampleWeights columns(
      {.in = c.in, .extent = static_cast<double>(c.in)}, c.out, c.first, c.count);
  std::mt19937 random(7);
  for (const bool white : {false, true}) {
    std::vector<uint8_t> row(static_cast<size_t>(c.in * 3));
    for (uint8_t& byte : row) byte = white ? 255 : static_cast<uint8_t>(random());
    const std::vector<uint8_t> want = exact(columns, row);
    for (const int64_t slack : {0, 15, 64}) {
      std::vector<uint8_t> from = row;
      from.resize(row.size() + static_cast<size_t>(slack), 0xA5);
      for (const RowCode code : {RowCode::kAny, best_row_code()}) {
        const RowResizer resizer(columns, code);
        std::vector<uint8_t> got(want.size());
        resizer.resize(from.data(), from.data() + from.size(), false, got.data());
        EXPECT_EQ(got, want) << slack;
        resizer.resize(from.data(), from.data() + from.size(), true, got.data());
        EXPECT_EQ(got, mirrored(want)) << slack;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes,
                         ResampleRows,
                         ::testing::Values(Case{224, 224, 0, 224},
                                           Case{351, 224, 0, 224},
                                           Case{500, 224, 17, 100},
                                           Case{8000, 224, 0, 224},
                                           Case{100, 224, 0, 224},
                                           Case{1, 7, 0, 7},
                                           Case{5, 1, 0, 1},
                                           Case{70000, 3, 1, 1}),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace lockstep::data::resample_rows_test
