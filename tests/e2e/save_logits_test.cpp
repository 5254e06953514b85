// -e --save-logits: the logits of test images in a file.
#include <algorithm>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>

#include "core/safetensors.h"
#include "tests/e2e/photo_runs.h"
#include "tests/e2e/small_dataset.h"

namespace lockstep::testing::save_logits_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

struct SavedLogits {
  Tensor logits, labels;

  explicit SavedLogits(const fs::path& file) {
    const Safetensors content = read_safetensors(file);
    EXPECT_EQ(content.tensors.size(), 2U);
    logits = content.tensors.at("logits");
    labels = content.tensors.at("labels");
    EXPECT_EQ(logits.dtype(), Dtype::kF32);
    EXPECT_EQ(labels.dtype(), Dtype::kI64);
    EXPECT_EQ(labels.shape(), Shape({logits.shape()[0]}));
  }

  std::vector<float> row(int64_t i) const {
    const float* const begin = logits.data<float>() + i * logits.shape()[1];
    return {begin, begin + logits.shape()[1]};
  }
  int64_t correct() const {
    int64_t count = 0;
    for (int64_t i = 0; i < labels.numel(); ++i) {
      const std::vector<float> of_image = row(i);
      const auto largest = std::ranges::max_element(of_image) - of_image.begin();
      count += largest == labels.data<int64_t>()[i] ? 1 : 0;
    }
    return count;
  }
};

// 300 test images in 19 chunks.
class SaveLogits : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    write_small_mnist(*dir_ / "mnist", 640, 300);
    Arguments line = {"train_convnet", mnist(), "--dataset", "mnist", "--epochs", "1"};
    line.insert(line.end(), {"--lr", "0.02", "-o", (*dir_ / "trained").string()});
    const ProgramResult result = run_program(line);
    ASSERT_EQ(result.exit_code, 0) << said(result);
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }

  static std::string mnist() { return (*dir_ / "mnist").string(); }
  static ProgramResult evaluate(int ranks, const std::string& name, const Arguments& more) {
    Arguments line = {"train_convnet", mnist(), "--dataset", "mnist", "-e", "--overwrite"};
    line.insert(line.end(), {"--pretrained", weights(*dir_ / "trained")});
    line.insert(line.end(), {"--val-batch-size", "16", "-o", (*dir_ / name).string()});
    line.insert(line.end(), more.begin(), more.end());
    return run_ranks(ranks, line);
  }
  // The error of a run that is refused before it evaluates.
  static std::string refused(const Arguments& more, int exit_code) {
    const ProgramResult result = evaluate(2, "refused", more);
    EXPECT_EQ(result.exit_code, exit_code) << said(result);
    EXPECT_THAT(result.out, Not(HasSubstr("ccuracy")));
    EXPECT_EQ(count_of(result.err, "\n  why: "), 1) << result.err;
    EXPECT_EQ(count_of(result.err, "\n  try: "), 1) << result.err;
    return result.err;
  }

  static TempDir* dir_;
};
TempDir* SaveLogits::dir_ = nullptr;

TEST_F(SaveLogits, TheSameBytesOnAnyRanks) {
  std::set<std::string> contents;
  for (const Arguments& how : {Arguments{"--tta", "none"},
                               Arguments{"--tta", "shift"},
                               Arguments{"--opt-level", "O3", "--dtype", "bf16"}}) {
    std::string alone;
    for (const int ranks : {1, 2, 3}) {
      SCOPED_TRACE(how[1] + " on " + std::to_string(ranks));
      const fs::path file = *dir_ / "files" / (how[1] + std::to_string(ranks) + ".safetensors");
      fs::create_directories(file.parent_path());
      Arguments more = how;
      more.insert(more.end(), {"--threads", ranks == 3 ? "2" : "1", "--save-logits"});
      more.push_back(file.string());
      const ProgramResult result = evaluate(ranks, "evaluated", more);
      ASSERT_EQ(result.exit_code, 0) << said(result);
      EXPECT_THAT(result.out, HasSubstr("logits  " + file.string() + "\n"));
      const std::string bytes = read_text(file);
      if (ranks == 1) alone = bytes;
      EXPECT_TRUE(bytes == alone);
      const SavedLogits saved(file);
      EXPECT_EQ(saved.logits.shape(), Shape({300, 10}));
      const nlohmann::json record = read_json(*dir_ / "evaluated/run.json");
      EXPECT_EQ(saved.correct(), record.at("final").at("correct").get<int64_t>());
      EXPECT_GT(saved.correct(), 40) << "above chance";
      EXPECT_EQ(record.at("flags").at("save-logits").at("value"), file.string());
      contents.insert(bytes);
    }
  }
  EXPECT_EQ(contents.size(), 3U) << "each precision and set of views has its own";
  EXPECT_EQ(std::distance(fs::directory_iterator(*dir_ / "files"), fs::directory_iterator()), 9);
}

TEST_F(SaveLogits, InTheRunDirectoryToo) {
  const fs::path file = *dir_ / "inside/logits.safetensors";
  for (int again = 0; again < 2; ++again) {
    const ProgramResult result = evaluate(1, "inside", {"--save-logits", file.string()});
    ASSERT_EQ(result.exit_code, 0) << said(result);
    EXPECT_EQ(SavedLogits(file).logits.shape(), Shape({300, 10}));
  }
}

TEST_F(SaveLogits, IsRefusedBeforeAnEvaluation) {
  EXPECT_THAT(refused({"--save-logits", "logits.npy"}, 2),
              HasSubstr("--save-logits logits.npy names no .safetensors"));
  EXPECT_THAT(refused({"--save-logits", "/nowhere/x.safetensors"}, 5),
              HasSubstr("/nowhere/x.safetensors"));
  EXPECT_THAT(refused({"--save-logits", "/proc/x.safetensors"}, 5), HasSubstr("x.safetensors"));
  const fs::path folder = *dir_ / "folder.safetensors";
  fs::create_directories(folder);
  EXPECT_THAT(refused({"--save-logits", folder.string()}, 2), HasSubstr("it is a folder"));
  const std::string there = weights(*dir_ / "trained");
  const std::string before = read_text(there);
  EXPECT_THAT(
      refused({"--no-overwrite", "-o", (*dir_ / "new").string(), "--save-logits", there}, 2),
      HasSubstr("there is such a file"));
  EXPECT_TRUE(read_text(there) == before);
  const ProgramResult training =
      run_program(convnet(*dir_ / "no", {"--save-logits", (*dir_ / "x.safetensors").string()}));
  EXPECT_EQ(training.exit_code, 2);
  EXPECT_THAT(training.err, HasSubstr("--save-logits needs --evaluate"));
  EXPECT_FALSE(fs::exists(*dir_ / "no"));
  EXPECT_FALSE(fs::exists(*dir_ / "x.safetensors"));
}

// The rows follow torchvision's order of photos. A photo that cannot be read gets the row and the
// label of the photo that takes its place.
TEST(SavePhotoLogits, InTheOrderOfTheFolders) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  const ProgramResult trained = run_program(resnet20(dir / "photos", dir / "run", {}));
  ASSERT_EQ(trained.exit_code, 0) << said(trained);
  write_file(dir / "photos/val/ants/3.jpg", {1, 2, 3});
  std::string alone;
  for (const int ranks : {1, 2, 3}) {
    const fs::path file = dir / ("logits" + std::to_string(ranks) + ".safetensors");
    Arguments line = {"train_resnet", (dir / "photos").string(), "-e", "--pretrained"};
    line.insert(line.end(), {weights(dir / "run"), "--val-batch-size", "2", "--save-logits"});
    line.insert(line.end(), {file.string(), "-o", (dir / "evaluated").string(), "--overwrite"});
    const ProgramResult result = run_ranks(ranks, line);
    ASSERT_EQ(result.exit_code, 0) << said(result);
    const std::string bytes = read_text(file);
    if (ranks == 1) alone = bytes;
    EXPECT_TRUE(bytes == alone) << ranks;
    const SavedLogits saved(file);
    EXPECT_EQ(saved.logits.shape(), Shape({8, 2}));
    const auto labels = saved.labels.span<int64_t>();
    EXPECT_THAT(std::vector(labels.begin(), labels.end()),
                ::testing::ElementsAre(0, 0, 0, 1, 1, 1, 1, 1));
    EXPECT_EQ(saved.row(3), saved.row(4));
    EXPECT_NE(saved.row(0), saved.row(1));
    EXPECT_EQ(saved.correct(),
              read_json(dir / "evaluated/run.json").at("final").at("correct").get<int64_t>());
  }
}

}  // namespace
}  // namespace lockstep::testing::save_logits_test
