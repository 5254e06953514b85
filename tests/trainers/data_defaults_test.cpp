// Tests the defaults that depend on the data set.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/run_request.h"
#include "trainers/options/presets.h"

namespace lockstep::trainers::data_defaults_test {
namespace {

using testing::options_of;

std::string origin_of(const Options& options, std::string_view name) {
  return std::string(name_of(options.find(name)->origin));
}

TEST(DataDefaults, ShapesAreWhatTrainResnetTrainsOnByItself) {
  const Options options = options_of("", {}, Program::kTrainResnet);
  EXPECT_EQ(options.text("arch"), "resnet20");
  EXPECT_EQ(options.integer("batch-size"), 16);
  EXPECT_EQ(options.number("epochs"), 4);
  EXPECT_EQ(options.text("lr-scheduler"), "cosine");
  EXPECT_EQ(origin_of(options, "arch"), "data set");
  EXPECT_EQ(make_run_request(options).dataset, "shapes");
}

TEST(DataDefaults, OtherSetsHaveTheFlagsOwn) {
  const Options options = options_of("--dataset synthetic", {}, Program::kTrainResnet);
  EXPECT_EQ(options.text("arch"), "resnet50");
  EXPECT_EQ(options.number("epochs"), 90);
  EXPECT_EQ(origin_of(options, "arch"), "default");
}

TEST(DataDefaults, GiveWayToTheEnvironmentAndTheCommandLine) {
  const Options options =
      options_of("-a resnet18", {{"LOCKSTEP_EPOCHS", "7"}}, Program::kTrainResnet);
  EXPECT_EQ(options.text("arch"), "resnet18");
  EXPECT_EQ(options.number("epochs"), 7);
  EXPECT_EQ(options.integer("batch-size"), 16);
}

TEST(DataDefaults, LeaveTrainConvnetAlone) {
  const Options options = options_of("");
  EXPECT_EQ(options.text("arch"), "convnet");
  EXPECT_EQ(origin_of(options, "batch-size"), "default");
  EXPECT_EQ(make_run_request(options).dataset, "digits");
}

TEST(DataDefaults, AFolderThatTellsNothingIsReportedLater) {
  const testing::TempDir empty;
  EXPECT_EQ(dataset_name(Program::kTrainResnet, "auto", empty.path().string()), "auto");
  EXPECT_EQ(dataset_name(Program::kTrainResnet, "cifar10", ""), "cifar10");
}

}  // namespace
}  // namespace lockstep::trainers::data_defaults_test
