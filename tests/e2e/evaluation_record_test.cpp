// Weights are evaluated like in their training, without repeating any of its flags.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gmock/gmock.h>

#include "core/safetensors.h"
#include "tests/e2e/photo_runs.h"
#include "tests/e2e/small_dataset.h"

namespace lockstep::testing::evaluation_record_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

void expect_same_figures(const fs::path& want, const fs::path& got) {
  const nlohmann::json trained = read_json(want / "run.json");
  const nlohmann::json evaluated = read_json(got / "run.json");
  for (const char* figure : {"correct", "loss"}) {
    EXPECT_EQ(evaluated.at("final").at(figure), trained.at("final").at(figure)) << figure;
  }
  EXPECT_EQ(evaluated.at("evaluation"), trained.at("evaluation"));
}

// The data has MNIST's layout, for which other runs normalize with 0.1307 and 0.3081.
class DemoWeights : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    write_small_mnist(*dir_ / "mnist", 640, 500);
    const ProgramResult result = run("demo", {"--preset", "demo-baseline", "--lr", "0.02"});
    ASSERT_EQ(result.exit_code, 0) << said(result);
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }

  static ProgramResult run(const std::string& name, const Arguments& more) {
    Arguments line = {"train_convnet", (*dir_ / "mnist").string(), "--dataset", "mnist"};
    line.insert(line.end(), {"--epochs", "1", "-o", (*dir_ / name).string()});
    line.insert(line.end(), more.begin(), more.end());
    return run_program(line);
  }
  static std::string demo() { return (*dir_ / "demo").string(); }

  static TempDir* dir_;
};
TempDir* DemoWeights::dir_ = nullptr;

TEST_F(DemoWeights, AreEvaluatedWithoutThePresetAsWithIt) {
  for (const Arguments& how :
       {Arguments{"-e", "--resume", demo()},
        Arguments{"-e", "--pretrained", weights(demo())},
        Arguments{"-e", "--pretrained", weights(demo()), "--preset", "demo-baseline"}}) {
    const std::string name = how[1] + std::to_string(how.size());
    const ProgramResult result = run(name, how);
    ASSERT_EQ(result.exit_code, 0) << said(result);
    expect_same_figures(demo(), *dir_ / name);
    const std::string noted = " records; without it --normalize 0.1307,0.3081\n";
    EXPECT_EQ(count_of(result.err, noted), how.size() == 3 ? 1 : 0) << result.err;
  }
}

TEST_F(DemoWeights, AFlagThatIsGivenWinsWithANote) {
  const ProgramResult result = run("given", {"-e", "--resume", demo(), "--normalize", "dataset"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("note: --normalize 0.1307,0.3081 as given; "),
                    HasSubstr("safetensors records none\n")));
  EXPECT_NE(read_json(*dir_ / "given" / "run.json").at("final").at("loss"),
            read_json(*dir_ / "demo" / "run.json").at("final").at("loss"));
}

TEST_F(DemoWeights, AreEvaluatedOnBuiltInImagesWithANote) {
  const auto evaluate = [](const fs::path& trained, const std::string& name) {
    return run_program({"train_convnet", "-e", "--resume", trained, "-o", *dir_ / name});
  };
  const ProgramResult others = evaluate(demo(), "digits");
  ASSERT_EQ(others.exit_code, 0) << said(others);
  EXPECT_THAT(others.err,
              HasSubstr("note: without a data folder the built-in digits are evaluated; "));
  const std::string own = *dir_ / "own";
  ASSERT_EQ(run_program({"train_convnet", "--max-steps", "1", "--no-eval", "-o", own}).exit_code,
            0);
  const ProgramResult same = evaluate(own, "own_digits");
  ASSERT_EQ(same.exit_code, 0) << said(same);
  EXPECT_THAT(same.err, Not(HasSubstr("built-in")));
}

TEST_F(DemoWeights, GoOnWithTheirPixels) {
  const ProgramResult refused = run("on", {"--resume", demo(), "--normalize", "0.5,0.5"});
  EXPECT_EQ(refused.exit_code, 4) << said(refused);
  EXPECT_THAT(refused.err, HasSubstr("error: --normalize is 0.5,0.5, "));
  EXPECT_THAT(refused.err, HasSubstr("safetensors has none\n  why: "));
  EXPECT_FALSE(fs::exists(*dir_ / "on"));
  for (const Arguments& how : {Arguments{"--resume", demo(), "--epochs", "2", "--momentum", "0"},
                               Arguments{"--pretrained", weights(demo()), "--max-steps", "1"}}) {
    const ProgramResult result = run(how[0], how);
    ASSERT_EQ(result.exit_code, 0) << said(result);
    const nlohmann::json record = read_json(*dir_ / how[0] / "run.json");
    EXPECT_EQ(record.at("evaluation").at("flags").at("normalize"), "none");
    EXPECT_EQ(record.at("flags").at("normalize").at("origin"), "weights file");
  }
}

// Like airbench94's evaluation. The views are recorded, as the pixels are.
TEST_F(DemoWeights, AreEvaluatedOverTheViewsOfTheirTraining) {
  const ProgramResult trained = run("viewed", {"--tta", "shift", "--lr", "0.02"});
  ASSERT_EQ(trained.exit_code, 0) << said(trained);
  const Arguments evaluate = {"-e", "--resume", (*dir_ / "viewed").string()};
  for (const int ranks : {1, 2}) {
    Arguments line = {"train_convnet", (*dir_ / "mnist").string(), "--dataset", "mnist", "-o"};
    line.push_back((*dir_ / ("views" + std::to_string(ranks))).string());
    line.insert(line.end(), evaluate.begin(), evaluate.end());
    const ProgramResult result = run_ranks(ranks, line);
    ASSERT_EQ(result.exit_code, 0) << said(result);
    EXPECT_THAT(result.err, HasSubstr("note: --tta shift as "));
    expect_same_figures(*dir_ / "viewed", *dir_ / ("views" + std::to_string(ranks)));
  }
  Arguments other = evaluate;
  other.insert(other.end(), {"--tta", "none"});
  const ProgramResult plain = run("one view", other);
  ASSERT_EQ(plain.exit_code, 0) << said(plain);
  EXPECT_THAT(plain.err, HasSubstr("note: --tta none as given; "));
  EXPECT_NE(read_json(*dir_ / "one view" / "run.json").at("final").at("loss"),
            read_json(*dir_ / "viewed" / "run.json").at("final").at("loss"));
  const ProgramResult refused =
      run("viewed", {"--resume", "auto", "--epochs", "2", "--tta", "flip"});
  EXPECT_EQ(refused.exit_code, 4) << said(refused);
  EXPECT_THAT(refused.err, HasSubstr("error: --tta is flip, "));
}

TEST_F(DemoWeights, WithoutARecordAreEvaluatedWithANote) {
  const fs::path bare = *dir_ / "bare.safetensors";
  Safetensors content = read_safetensors(weights(demo()));
  content.metadata = {};
  write_safetensors(bare, content);
  const ProgramResult result = run("bare", {"-e", "--pretrained", bare.string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_THAT(result.err,
              HasSubstr("bare.safetensors does not record how its images were normalized: "
                        "--normalize 0.1307,0.3081 is assumed\n"));
}

TEST_F(DemoWeights, ThatAreNotThereAreNotEvaluated) {
  const ProgramResult result = run("nothing", {"-e", "--resume", "auto"});
  EXPECT_EQ(result.exit_code, 4) << said(result);
  EXPECT_THAT(result.err, HasSubstr("there are no weights to evaluate\n  why: --resume auto"));
}

TEST(PhotoWeights, BringTheirNetworkSizesAndClasses) {
  const TempDir dir;
  write_image_folders(dir / "photos", 4);
  const ProgramResult trained = run_program(resnet(dir / "photos",
                                                   dir / "run",
                                                   {"--train-crop-size",
                                                    "32",
                                                    "--val-resize-size",
                                                    "36",
                                                    "--val-crop-size",
                                                    "32",
                                                    "--decode",
                                                    "shrunk",
                                                    "--cifar-stem"}));
  ASSERT_EQ(trained.exit_code, 0) << said(trained);
  const auto evaluate = [&](const std::string& name, const Arguments& more = {}) {
    Arguments line = {"train_resnet", (dir / "photos").string(), "-e", "-o", (dir / name).string()};
    line.insert(line.end(), {"-b", "8", "--pretrained", weights(dir / "run")});
    line.insert(line.end(), more.begin(), more.end());
    return run_program(line);
  };
  const ProgramResult same = evaluate("same");
  ASSERT_EQ(same.exit_code, 0) << said(same);
  expect_same_figures(dir / "run", dir / "same");
  EXPECT_THAT(read_json(dir / "run" / "run.json").at("evaluation").at("class_names"),
              ::testing::ElementsAre("ants", "bees"));

  const ProgramResult other = evaluate("other", {"-a", "resnet34"});
  EXPECT_EQ(other.exit_code, 4) << said(other);
  EXPECT_THAT(other.err, HasSubstr("error: --arch is resnet34, "));

  for (const char* split : {"train", "val"}) {
    fs::rename(dir / "photos" / split / "ants", dir / "photos" / split / "wasps");
  }
  const ProgramResult renamed = evaluate("renamed");
  EXPECT_EQ(renamed.exit_code, 3) << said(renamed);
  EXPECT_THAT(renamed.err, HasSubstr("error: no class has the name of the folder "));
}

// Of three classes; the test set has photos of the last two.
class PhotosOfTwoClasses : public ::testing::Test {
 protected:
  PhotosOfTwoClasses() {
    write_image_folders(dir_ / "photos", 4);
    for (const char* split : {"train", "val"}) {
      fs::copy(dir_ / "photos" / split / "ants", dir_ / "photos" / split / "wasps");
    }
    const ProgramResult trained = run_program(resnet20(dir_ / "photos", dir_ / "run", {}));
    EXPECT_EQ(trained.exit_code, 0) << said(trained);
    fs::remove_all(dir_ / "photos" / "val" / "ants");
    Safetensors content = read_safetensors(weights(dir_ / "run"));
    content.metadata = {};
    write_safetensors(bare(), content);
  }

  std::string bare() const { return dir_ / "bare.safetensors"; }
  ProgramResult evaluate(const std::string& file, const Arguments& more) const {
    Arguments line = {"-e", "--pretrained", file, "--save-logits", logits_, "--overwrite"};
    line.insert(line.end(), more.begin(), more.end());
    return run_program(resnet20(dir_ / "photos", dir_ / "evaluated", line));
  }
  void expect_labels(int64_t bees, int64_t wasps) const {
    const Safetensors saved = read_safetensors(logits_);
    const auto labels = saved.tensors.at("labels").span<int64_t>();
    EXPECT_THAT(std::vector(labels.begin(), labels.end()),
                ::testing::ElementsAre(bees, bees, bees, bees, wasps, wasps, wasps, wasps));
    const Tensor& logits = saved.tensors.at("logits");
    int64_t correct = 0;
    for (int64_t i = 0; i < logits.shape()[0]; ++i) {
      const auto row = logits.span<float>().subspan(static_cast<size_t>(i) * 3, 3);
      correct += std::ranges::max_element(row) - row.begin() == labels[static_cast<size_t>(i)];
    }
    const nlohmann::json record = read_json(dir_ / "evaluated" / "run.json");
    EXPECT_EQ(record.at("final").at("correct"), correct);
  }

  const TempDir dir_;
  const std::string logits_ = dir_ / "logits.safetensors";
};

TEST_F(PhotosOfTwoClasses, AreComparedWithTheOutputsOfTheirNames) {
  const ProgramResult recorded = evaluate(weights(dir_ / "run"), {});
  ASSERT_EQ(recorded.exit_code, 0) << said(recorded);
  EXPECT_THAT(recorded.err,
              HasSubstr("imagefolder/val has images of 2 of 3 classes, none of ants"));
  expect_labels(1, 2);
  std::ofstream(dir_ / "names.txt") << "wasps\nants\nbees\n";
  const ProgramResult named = evaluate(bare(), {"--class-names", dir_ / "names.txt"});
  ASSERT_EQ(named.exit_code, 0) << said(named);
  expect_labels(2, 0);
}

TEST_F(PhotosOfTwoClasses, AreRefusedWhereTheThreeOutputsHaveNoNames) {
  for (const Arguments& count : {Arguments{}, Arguments{"--num-classes", "3"}}) {
    const ProgramResult refused = evaluate(bare(), count);
    EXPECT_EQ(refused.exit_code, count.empty() ? 4 : 3) << said(refused);
    EXPECT_THAT(refused.err, HasSubstr("--class-names FILE"));
    EXPECT_FALSE(fs::exists(logits_));
  }
}

}  // namespace
}  // namespace lockstep::testing::evaluation_record_test
