// Each fuzz target takes its seeds, its corpus and changed copies of both. Here without a fuzzer:
// ASan and UBSan see what it would see.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include "core/mt19937.h"
#include "tests/fuzz/target.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace lockstep::fuzz {
namespace {

class FuzzTarget : public ::testing::TestWithParam<Target> {};

// Inputs that once broke something, and those that reach far.
std::vector<std::string> corpus_of(const Target& target) {
  std::vector<std::string> corpus = target.seeds();
  const auto folder = testing::golden_folder().parent_path() / "fuzz" / "corpus" / target.name;
  if (!std::filesystem::is_directory(folder)) return corpus;
  std::set<std::filesystem::path> files;  // in the same order on each machine
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.insert(entry.path());
  for (const auto& file : files) corpus.push_back(testing::read_text(file));
  return corpus;
}

TEST_P(FuzzTarget, HasACorpus) {
  EXPECT_GT(corpus_of(GetParam()).size(), GetParam().seeds().size() + 1);
}

TEST_P(FuzzTarget, ReadsItsFirstSeed) {
  const std::vector<std::string> seeds = GetParam().seeds();
  ASSERT_FALSE(seeds.empty());
  EXPECT_NO_THROW(GetParam().read(seeds.front())) << "the first one is sound";
}

std::string repeated(std::string_view piece, size_t times) {
  std::string text;
  for (; times > 0; --times) text += piece;
  return text;
}

// A byte changed, a piece cut out, doubled or repeated very often, the end cut off.
std::string changed(std::string text, Mt19937& rng) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(rng.next_u32()) % n; };
  for (size_t changes = 1 + below(3); changes > 0; --changes) {
    const size_t at = below(text.size()), bytes = below(std::min<size_t>(text.size() - at, 16) + 1);
    switch (below(6)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(rng.next_u32());
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 2:
        text.erase(at, bytes);
        break;
      case 3:
        text.insert(at, text.substr(at, bytes));
        break;
      case 4:
        text.insert(at, repeated(text.substr(at, bytes), size_t{1} << below(18)));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

TEST_P(FuzzTarget, TakesChangedCopiesOfItsCorpus) {
  const auto seeds = std::ssize(GetParam().seeds());
  Mt19937 rng(42);
  std::ptrdiff_t number = 0;
  for (const std::string& input : corpus_of(GetParam())) {
    EXPECT_NO_THROW(run(GetParam(), input)) << ::testing::PrintToString(input);
    const int copies = number++ < seeds ? 60 : 10;
    for (int i = 0; i < copies; ++i) {
      const std::string copy = changed(input, rng);
      EXPECT_NO_THROW(run(GetParam(), copy)) << ::testing::PrintToString(copy);
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Target>& target) {
  return std::string(target.param.name);
}

INSTANTIATE_TEST_SUITE_P(All, FuzzTarget, ::testing::ValuesIn(all_targets()), name_of);

}  // namespace
}  // namespace lockstep::fuzz
