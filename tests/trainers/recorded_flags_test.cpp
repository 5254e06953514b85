#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/state/class_names.h"
#include "tests/trainers/options_of.h"
#include "tests/trainers/tiny_run.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/loop/training_data.h"
#include "trainers/report/evaluation_record.h"

namespace lockstep::trainers::recorded_flags_test {
namespace {

using enum WeightsUse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::options_of;

EvaluationRecord with(const Texts& flags) {
  return {.flags = flags, .image = "3x32x32", .class_names = {"ants", "bees"}};
}

// An O2 run on photos of 32 pixels.
EvaluationRecord photo_run() {
  return with({{"arch", "resnet18"},
               {"cifar-stem", "true"},
               {"num-classes", "2"},
               {"normalize", "none"},
               {"train-crop-size", "32"},
               {"val-resize-size", "36"},
               {"val-crop-size", "32"},
               {"interpolation", "bicubic"},
               {"train-interpolation", "random"},
               {"decode", "shrunk"},
               {"tta", "flip"},
               {"opt-level", "O2"},
               {"dtype", "bf16"},
               {"keep-batchnorm-fp32", "true"},
               {"master-weights", "false"}});
}

// The flags that a command line takes over from photo_run().
std::vector<std::string> taken(const std::string& line,
                               WeightsUse use,
                               Program program = Program::kTrainResnet) {
  Options options = options_of(line, {}, program);
  take_flags(options, photo_run(), use);
  std::vector<std::string> names;
  for (const ResolvedFlag& flag : options.resolved()) {
    if (flag.origin != "weights file") continue;
    EXPECT_EQ(flag.value, photo_run().flags.at(flag.name));
    names.push_back(flag.name);
  }
  return names;
}

const std::vector<std::string> kAllButPrecision = {"tta",
                                                   "normalize",
                                                   "train-crop-size",
                                                   "val-resize-size",
                                                   "val-crop-size",
                                                   "interpolation",
                                                   "train-interpolation",
                                                   "decode",
                                                   "arch",
                                                   "num-classes",
                                                   "cifar-stem"};

TEST(TakeFlags, WhatWasNotGiven) {
  EXPECT_EQ(taken("DIR", kEvaluate).size(), 15U);
  EXPECT_EQ(taken("DIR", kResume), kAllButPrecision);
  EXPECT_THAT(taken("DIR", kFineTune), ElementsAre("normalize", "arch", "cifar-stem"));
  EXPECT_THAT(taken("DIR --normalize dataset --cifar-stem", kFineTune), ElementsAre("arch"));
}

TEST(TakeFlags, APresetGivesWay) {
  EXPECT_THAT(taken("--preset imagenet-main DIR", kFineTune),
              ElementsAre("normalize", "arch", "cifar-stem"));
}

TEST(TakeFlags, OfPrecisionAllOrNone) {
  for (const char* given : {"--opt-level O3", "--amp", "--fp16"}) {
    EXPECT_EQ(taken(std::string("DIR ") + given, kEvaluate), kAllButPrecision) << given;
  }
}

TEST(TakeFlags, NoneThatTheProgramLacksAndNoneThatCannotBe) {
  Options options = options_of("");
  take_flags(options, with({{"arch", "toy_net"}, {"cifar-stem", "false"}}), kEvaluate);
  EXPECT_EQ(options.text("arch"), "toy_net");
  const auto error =
      testing::usage_error([&] { take_flags(options, with({{"arch", "resnet18"}}), kEvaluate); });
  ASSERT_TRUE(error);
  EXPECT_STREQ(error->what(), "bad value: --arch resnet18");
}

std::string refused(const std::string& flag, const std::string& now, WeightsUse use) {
  EvaluationRecord changed = photo_run();
  changed.flags[flag] = now;
  const auto found = contradiction(changed, photo_run(), use);
  return found ? fmt::format("{} {}, not {}", found->flag, found->now, found->recorded) : "";
}

TEST(Contradiction, OfANetworkAlwaysOfPixelsWhenARunGoesOn) {
  for (const WeightsUse use : {kEvaluate, kResume, kFineTune}) {
    EXPECT_EQ(refused("arch", "resnet34", use), "--arch resnet34, not resnet18");
    EXPECT_EQ(refused("cifar-stem", "false", use), "--cifar-stem false, not true");
    EXPECT_EQ(refused("opt-level", "O0", use), "");
    const bool goes_on = use == kResume;
    EXPECT_EQ(refused("normalize", "0.5,0.5", use), goes_on ? "--normalize 0.5,0.5, not none" : "");
    EXPECT_EQ(refused("val-crop-size", "30", use), goes_on ? "--val-crop-size 30, not 32" : "");
    EXPECT_EQ(refused("interpolation", "bilinear", use),
              goes_on ? "--interpolation bilinear, not bicubic" : "");
    EXPECT_EQ(refused("train-interpolation", "bicubic", use),
              goes_on ? "--train-interpolation bicubic, not random" : "");
    EXPECT_EQ(refused("tta", "none", use), goes_on ? "--tta none, not flip" : "");
    EXPECT_EQ(refused("num-classes", "3", use), use == kFineTune ? "" : "--num-classes 3, not 2");
  }
  EXPECT_FALSE(contradiction(photo_run(), {}, kResume));
}

TEST(OtherClass, NamesTheFirst) {
  EvaluationRecord here = photo_run();
  EXPECT_FALSE(other_class(here.class_names, photo_run().class_names, "F"));
  here.class_names = {"ants", "wasps", "bees"};
  EXPECT_EQ(other_class(here.class_names, photo_run().class_names, "F"),
            "class 1 is 'wasps' here, 'bees' in F");
  here.class_names = {"ants"};
  EXPECT_EQ(other_class(here.class_names, photo_run().class_names, "F"),
            "class 1 is none here, 'bees' in F");
  here.class_names = {};
  EXPECT_FALSE(other_class(here.class_names, photo_run().class_names, "F"))
      << "a set without names";
}

TEST(NotesOnFlags, SayWhatWasTakenAndWhatWouldHaveBeen) {
  EvaluationRecord asked = photo_run();
  asked.flags["normalize"] = "0.485,0.456,0.406,0.229,0.224,0.225";
  asked.flags["opt-level"] = "O0";
  asked.flags.erase("dtype");
  EXPECT_THAT(
      notes_on_flags(asked, photo_run(), photo_run(), kEvaluate, "F"),
      ElementsAre("note: --normalize none --opt-level O2 --dtype bf16 as F records; without "
                  "it --normalize 0.485,0.456,0.406,0.229,0.224,0.225 --opt-level O0"));
  EXPECT_THAT(notes_on_flags(photo_run(), photo_run(), photo_run(), kEvaluate, "F"), IsEmpty());
}

TEST(NotesOnFlags, SayWhatWasGivenAgainstTheRecord) {
  EvaluationRecord now = photo_run();
  now.flags["normalize"] = "0.5,0.5";
  now.flags["val-crop-size"] = "36";
  now.image = "3x36x36";
  EXPECT_THAT(notes_on_flags(now, now, photo_run(), kEvaluate, "F"),
              ElementsAre("note: --normalize 0.5,0.5 as given; F records none",
                          "note: --val-crop-size 36 as given; F records 32"));
  EXPECT_THAT(notes_on_flags(now, now, photo_run(), kFineTune, "F"),
              ElementsAre("note: --normalize 0.5,0.5 as given; F records none"));
}

TEST(NotesOnFlags, SayWhatAFileLeavesOpen) {
  const std::vector<std::string> notes =
      notes_on_flags(photo_run(), photo_run(), {}, kEvaluate, "F");
  EXPECT_THAT(notes,
              ElementsAre("note: F does not record how its images were normalized: "
                          "--normalize none is assumed"));
}

TEST(NotesOnFlags, CompareImagesThatHaveNoSizesToSet) {
  EvaluationRecord cifar = photo_run();
  cifar.flags.erase("val-crop-size");
  EvaluationRecord now = photo_run();
  now.image = "3x224x224";
  EXPECT_THAT(notes_on_flags(now, now, cifar, kEvaluate, "F"),
              ElementsAre("note: images are 3x224x224 here; F records 3x32x32"));
}

TEST(NotesOnFlags, OtherClassesOfOneCountKeepTheClassifier) {
  EvaluationRecord now = photo_run();
  now.class_names = {"cats", "dogs"};
  EXPECT_THAT(notes_on_flags(now, now, photo_run(), kFineTune, "F"),
              ElementsAre(HasSubstr("class 0 is 'cats' here, 'ants' in F; the classifier starts")));
  now.class_names = {"cats"};
  EXPECT_THAT(notes_on_flags(now, now, photo_run(), kFineTune, "F"),
              ElementsAre(HasSubstr("class 0 is 'cats' here")))
      << "--num-classes 2 given";
  now.class_names = {"cats", "dogs", "eels"};
  now.flags["num-classes"] = "3";
  EXPECT_THAT(notes_on_flags(now, now, photo_run(), kFineTune, "F"), IsEmpty());
}

EvaluationRecord record_of_line(const std::string& line) {
  const RunRequest request = make_run_request(options_of(line));
  return evaluation_record(request, open_training_data(request));
}

TEST(EvaluationRecord, SaysWhatTheRunComputesWith) {
  const EvaluationRecord plain = record_of_line("--dummy --normalize 0.25,0.125");
  EXPECT_EQ(plain.flags,
            (Texts{{"arch", "convnet"},
                   {"blur-pool", "false"},
                   {"cifar-stem", "false"},
                   {"num-classes", "10"},
                   {"normalize", "0.25,0.125"},
                   {"opt-level", "O0"},
                   {"tta", "none"}}));
  EXPECT_EQ(plain.image, "1x28x28");
  const EvaluationRecord half =
      record_of_line("--opt-level O2 --dtype bf16 --preset demo-baseline");
  EXPECT_EQ(half.flags.at("normalize"), "none");
  EXPECT_EQ(half.flags.at("dtype"), "bf16");
  EXPECT_EQ(half.flags.at("master-weights"), "true");
}

// The flags of a training with growing images, and those of BlurPool.
TEST(TakeFlags, OfGrowingImagesAndBlurPool) {
  const EvaluationRecord record = with({{"arch", "resnet50"},
                                        {"blur-pool", "true"},
                                        {"train-crop-size", "192"},
                                        {"res-from", "160"},
                                        {"res-epochs", "11:13"}});
  Options options = options_of("DIR", {}, Program::kTrainResnet);
  take_flags(options, record, kResume);
  const RunRequest request = make_run_request(options);
  EXPECT_TRUE(request.blur_pool);
  EXPECT_EQ(request.photos.train_ramp.side(12, request.photos.train_crop), 192);
  EXPECT_EQ(request.photos.train_ramp.side(11, request.photos.train_crop), 160);
}

TEST(EvaluationRecord, IsReadBack) {
  EvaluationRecord record = photo_run();
  record.average = true;
  EXPECT_EQ(evaluation_record_of(to_json(record)), record);
}

}  // namespace
}  // namespace lockstep::trainers::recorded_flags_test
