// Combinations of options for training on photos: the bits are the same on one rank and on two or
// three.
#include "tests/e2e/pairwise.h"
#include "tests/e2e/photo_runs.h"

namespace lockstep::testing::photo_combinations_test {
namespace {

// --decode, --cache-mb, -j, --mixup, --ema, LARC or not, --lr-scheduler, the network (GhostNet has
// dropout), and the number of ranks that is compared with one rank.
std::vector<Factors> pairwise() {
  return {{"exact", "1", "2", "0", "0.9", "--larc", "const", "resnet20", "3"},
          {"shrunk", "0", "0", "0.4", "0.9", "--no-larc", "const", "resnet20", "3"},
          {"shrunk", "1", "2", "0", "0", "--no-larc", "onecycle", "resnet20", "2"},
          {"exact", "0", "0", "0.4", "0", "--no-larc", "poly", "resnet20", "2"},
          {"shrunk", "1", "2", "0.4", "0", "--larc", "poly", "resnet20", "3"},
          {"shrunk", "0", "2", "0", "0", "--no-larc", "const", "ghostnet_100", "2"},
          {"exact", "0", "0", "0.4", "0.9", "--larc", "onecycle", "ghostnet_100", "3"},
          {"shrunk", "1", "0", "0", "0.9", "--larc", "poly", "ghostnet_100", "2"}};
}

TEST(PhotoCombinationsTable, IsAPairwiseCover) {
  expect_pairwise_cover(pairwise());
}

class PhotoCombinations : public ::testing::TestWithParam<Factors> {};

// Two epochs, of twelve photos and of six. Each rank has two shards.
TEST_P(PhotoCombinations, TrainWithTheSameBits) {
  const Factors& row = GetParam();
  const int ranks = std::stoi(row[8]);
  const TempDir dir;
  write_image_folders(dir / "photos", 9);
  const auto line = [&](const std::string& name, const Arguments& more) {
    Arguments arguments = {"train_resnet", (dir / "photos").string(), "-o", (dir / name).string()};
    arguments.insert(arguments.end(), {"--train-crop-size", "16", "--val-resize-size", "18"});
    arguments.insert(arguments.end(), {"--val-crop-size", "16", "--epochs", "2", "-p", "1"});
    arguments.insert(arguments.end(), {"--global-batch-size", "12", "--lr", "0.01"});
    arguments.insert(arguments.end(), {"--shards", std::to_string(2 * ranks)});
    arguments.insert(arguments.end(), {"--bn-groups", row[8], "--decode", row[0]});
    arguments.insert(arguments.end(), {"--mixup", row[3], "--ema", row[4], row[5]});
    arguments.insert(arguments.end(), {"--lr-scheduler", row[6], "-a", row[7]});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const ProgramResult one = run_program(line("one", {}));
  ASSERT_EQ(one.exit_code, 0) << said(one);
  const ProgramResult several =
      run_ranks(ranks, line("several", {"--cache-mb", row[1], "-j", row[2]}));
  ASSERT_EQ(several.exit_code, 0) << said(several);
  expect_same_bits(dir / "one", dir / "several");
}
INSTANTIATE_TEST_SUITE_P(Pairwise, PhotoCombinations, ::testing::ValuesIn(pairwise()));

}  // namespace
}  // namespace lockstep::testing::photo_combinations_test
