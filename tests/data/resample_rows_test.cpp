#include "data/resample_rows.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace lockstep::data::resample_rows_test {
namespace {

constexpr int64_t kOne = int64_t{1} << ResampleWeights::kFractionBits;

struct Case {
  int64_t in, out, first, count;
  Interpolation by = Interpolation::kBilinear;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << (c.by == Interpolation::kBicubic ? "bicubic" : "bilinear") << c.in << "To" << c.out
       << "From" << c.first << "Count" << c.count;
}

// Each size by both.
std::vector<Case> cases() {
  std::vector<Case> all = {Case{224, 224, 0, 224},
                           Case{351, 224, 0, 224},
                           Case{500, 224, 17, 100},
                           Case{8000, 224, 0, 224},
                           Case{100, 224, 0, 224},
                           Case{1, 7, 0, 7},
                           Case{2, 4000, 0, 4000},
                           Case{5, 1, 0, 1},
                           Case{70000, 3, 1, 1}};
  for (size_t i = 0, count = all.size(); i < count; ++i) {
    all.push_back(all[i]);
    all.back().by = Interpolation::kBicubic;
  }
  return all;
}

ResampleWeights weights_of(const Case& c) {
  const Axis axis = {.in = c.in, .extent = static_cast<double>(c.in)};
  return {axis, c.out, c.first, c.count, c.by};
}

// A result before it is cut to a byte.
int64_t exact_value(const ResampleWeights& columns, int64_t i, const uint8_t* pixels) {
  int64_t sum = kOne / 2;
  for (int64_t k = 0; k < columns.part(i).count; ++k) {
    sum += int64_t{columns.of(i)[k]} * pixels[(columns.part(i).begin + k) * 3];
  }
  return sum >> ResampleWeights::kFractionBits;
}

std::vector<uint8_t> exact(const ResampleWeights& columns, const std::vector<uint8_t>& row) {
  std::vector<uint8_t> results;
  for (int64_t i = 0; i < columns.size(); ++i) {
    for (int64_t color = 0; color < 3; ++color) {
      const int64_t value = exact_value(columns, i, row.data() + color);
      results.push_back(static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255)));
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

// White where the weights of result `i` are positive, or negative, elsewhere black: its largest
// sum, or its least.
std::vector<uint8_t> extreme(const Case& c, int64_t i, bool positive) {
  const ResampleWeights columns = weights_of(c);
  std::vector<uint8_t> row(static_cast<size_t>(c.in * 3));
  for (int64_t k = 0; k < columns.part(i).count; ++k) {
    if ((columns.of(i)[k] > 0) != positive) continue;
    std::fill_n(row.data() + (columns.part(i).begin + k) * 3, 3, uint8_t{255});
  }
  return row;
}

std::vector<std::vector<uint8_t>> rows_of(const Case& c) {
  std::mt19937 random(7);
  std::vector<uint8_t> noise(static_cast<size_t>(c.in * 3)), stark = noise;
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  for (uint8_t& byte : stark) byte = random() % 2 == 0 ? 0 : 255;
  const std::vector<uint8_t> white(noise.size(), 255);
  return {noise,
          stark,
          white,
          extreme(c, c.count / 2, true),
          extreme(c, c.count / 2, false),
          extreme(c, 0, true),
          extreme(c, 0, false)};
}

class ResampleRows : public ::testing::TestWithParam<Case> {};

// `slack` bytes follow that the row may look at.
TEST_P(ResampleRows, EveryProcessorGivesTheExactSums) {
  const Case& c = GetParam();
  const ResampleWeights columns = weights_of(c);
  for (const std::vector<uint8_t>& row : rows_of(c)) {
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

// The other pass: a column of pixels, `width` of them side by side, alike.
TEST_P(ResampleRows, RowsAreMixedToTheExactSums) {
  const Case& c = GetParam();
  const ResampleWeights rows = weights_of(c);
  for (const int64_t width : {1, 31, 40}) {
    for (const std::vector<uint8_t>& column : rows_of(c)) {
      for (const int64_t i : {int64_t{0}, c.count / 2, c.count - 1}) {
        const ResampleWeights::Part& part = rows.part(i);
        std::vector<uint8_t> pixels;
        for (int64_t k = part.begin; k < part.end(); ++k) {
          pixels.insert(
              pixels.end(), static_cast<size_t>(width), column[static_cast<size_t>(k * 3)]);
        }
        std::vector<uint8_t> got(static_cast<size_t>(width));
        mix_rows(pixels.data(), width, part.count, rows.of(i), got.data());
        const int64_t want = std::clamp<int64_t>(exact_value(rows, i, column.data()), 0, 255);
        EXPECT_EQ(got, std::vector<uint8_t>(got.size(), static_cast<uint8_t>(want))) << i;
      }
    }
  }
}

// So that sums of bytes fit in 32 bits.
TEST_P(ResampleRows, WeightsAddUpToOneAndThePositiveOnesToLessThanTwo) {
  const ResampleWeights weights = weights_of(GetParam());
  for (int64_t i = 0; i < weights.size(); ++i) {
    int64_t sum = 0, positive = 0;
    for (int64_t k = 0; k < weights.part(i).count; ++k) {
      sum += weights.of(i)[k];
      positive += std::max<int64_t>(weights.of(i)[k], 0);
    }
    EXPECT_LE(std::abs(sum - kOne), weights.part(i).count) << i;
    EXPECT_LT(positive, kOne * 5 / 4) << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes,
                         ResampleRows,
                         ::testing::ValuesIn(cases()),
                         ::testing::PrintToStringParamName());

TEST(BicubicRows, GoBeyondBlackAndWhite) {
  const Case c = {100, 224, 0, 224, Interpolation::kBicubic};
  const ResampleWeights columns = weights_of(c);
  EXPECT_LT(exact_value(columns, 112, extreme(c, 112, false).data()), -15);
  EXPECT_GT(exact_value(columns, 112, extreme(c, 112, true).data()), 270);
}

}  // namespace
}  // namespace lockstep::data::resample_rows_test
