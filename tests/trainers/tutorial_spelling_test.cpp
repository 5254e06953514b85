// Items 0.18 and 2.1: the flags of the tutorials' scripts, in the scripts' spelling.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"
#include "trainers/options/presets.h"

namespace lockstep::trainers::tutorial_spelling_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::options_of;
using testing::refusal;

const std::string kTricks = "--preset ddp-tricks ";  // NOLINT: of this test alone

TEST(TutorialSpelling, EachFlagOfTutorial000HasBothSpellings) {
  struct Case {
    const char* line;
    const char* flag;
    const char* value;
  };
  for (const Case& c : {
           Case{"-l .5", "lr", ".5"},
           Case{"--learning_rate .5", "lr", ".5"},
           Case{"-b 64", "batch-size", "64"},
           Case{"--batch_size=64", "batch-size", "64"},
           Case{"-b 64", "val-batch-size", "64"},
           Case{"-e 7", "epochs", "7"},
           Case{"-e7", "epochs", "7"},
           Case{"--epochs 7", "epochs", "7"},
           Case{"-w 3", "warmup-epochs", "3"},
           Case{"--warmup_epochs 3", "warmup-epochs", "3"},
           Case{"-t linear", "warmup-method", "linear"},
           Case{"-t cosine", "warmup-method", "frozen-cosine"},
           Case{"--warmup_type=cosine", "warmup-method", "frozen-cosine"},
           Case{"-s 5", "seed", "5"},
           Case{"--seed_num 5", "seed", "5"},
           Case{"-d DIR", "data", "DIR"},
           Case{"--data_path DIR", "data", "DIR"},
           Case{"-n X", "output-dir", "experiment_model/X"},
           Case{"-en=X", "output-dir", "experiment_model/X"},
           Case{"--exp_name X", "output-dir", "experiment_model/X"},
           Case{"-p runs", "output-dir", "runs/DDP_warmup"},
           Case{"--model_path ./m/ -n X", "output-dir", "./m/X"},
           Case{"-n X -o there", "output-dir", "there"},
       }) {
    const Options options = options_of(kTricks + c.line);
    ASSERT_NE(options.find(c.flag), nullptr) << c.line;
    EXPECT_EQ(options.text(c.flag), c.value) << c.line;
    EXPECT_TRUE(options.given(c.flag)) << c.line;
  }
  EXPECT_EQ(options_of(kTricks).find("output-dir"), nullptr);
  EXPECT_EQ(options_of(kTricks + "--local_rank=0").text("local-rank"), "0");
}

// DDP_warmup.py. Its sampler takes no seed.
TEST(DdpTricksPreset, IsTutorial000) {
  const Options tricks = options_of("--preset ddp-tricks");
  EXPECT_EQ(tricks.text("arch"), "toy_net");
  EXPECT_EQ(tricks.integer("batch-size"), 1024);
  EXPECT_EQ(tricks.number("epochs"), 500);
  EXPECT_EQ(tricks.number("lr"), .1);
  EXPECT_EQ(tricks.number("momentum"), .9);
  EXPECT_TRUE(tricks.boolean("nesterov"));
  EXPECT_EQ(tricks.number("weight-decay"), 0);
  EXPECT_TRUE(tricks.boolean("lookahead"));
  EXPECT_EQ(tricks.integer("lookahead-k"), 10);
  EXPECT_EQ(tricks.number("lookahead-alpha"), .5);
  EXPECT_EQ(tricks.text("lookahead-variant"), "alphadl");
  EXPECT_EQ(tricks.integer("warmup-epochs"), 10);
  EXPECT_EQ(tricks.text("lr-scheduler"), "plateau");
  EXPECT_EQ(tricks.integer("plateau-patience"), 10);
  EXPECT_EQ(tricks.integer("early-stopping"), 50);
  EXPECT_EQ(tricks.integer("seed"), 42);
  EXPECT_EQ(tricks.integer("seed-order"), 0);
  EXPECT_EQ(tricks.text("opt-level"), "O1");
  EXPECT_TRUE(tricks.boolean("loss-div-batch"));
  EXPECT_THAT(tricks.notes, ::testing::IsEmpty());
}

TEST(TutorialSpelling, ValuesAreCheckedAsOurs) {
  EXPECT_THAT(refusal(kTricks + "-e 0"), HasSubstr("bad value: --epochs 0"));
  EXPECT_THAT(refusal(kTricks + "-t sine"), HasSubstr("bad value: --warmup-method sine"));
  EXPECT_THAT(refusal(kTricks + "-l"), HasSubstr("--lr needs a value"));
  EXPECT_THAT(refusal(kTricks + "-n --lr .1"), HasSubstr("--output-dir needs a value"));
  EXPECT_THAT(refusal(kTricks + "-x 3"), HasSubstr("unknown flag -x"));
}

TEST(TutorialSpelling, UnderTheDemosEIsEpochs) {
  for (const char* preset : {"demo-baseline", "demo-ddp"}) {
    const Options options = options_of(fmt::format("--preset {} --gpu 0 -e 4 -b 16", preset));
    EXPECT_EQ(options.number("epochs"), 4);
    EXPECT_EQ(options.integer("batch-size"), 16);
    EXPECT_FALSE(options.boolean("evaluate"));
    EXPECT_THAT(options.notes, ElementsAre(HasSubstr("--gpu (main.py) changes nothing")));
  }
  EXPECT_EQ(options_of("-e 4", {{"LOCKSTEP_PRESET", "demo-ddp"}}).number("epochs"), 4);
  EXPECT_EQ(options_of("-e 4 --preset=demo-ddp").number("epochs"), 4);
  EXPECT_EQ(options_of("-e 2.5 --preset demo-ddp").number("epochs"), 2.5);
}

TEST(TutorialSpelling, WithoutANumberEEvaluates) {
  for (const char* line : {"-e --pretrained F --preset demo-ddp", "--preset ddp-tricks -e", "-e"}) {
    EXPECT_TRUE(options_of(line).boolean("evaluate")) << line;
  }
}

TEST(TutorialSpelling, ElsewhereANumberBehindEIsAnswered) {
  for (const char* line : {"-e 3", "DIR --gpu 0 -e 3 -b 32", "-e 1"}) {
    EXPECT_THAT(refusal(line), HasSubstr("| --epochs ")) << line;
  }
  EXPECT_THAT(refusal("-w 3"), HasSubstr("unknown flag -w"));
  EXPECT_THAT(refusal("-w 3"), HasSubstr("| --preset ddp-tricks, which has it"));
}

TEST(TutorialSpelling, BehindTwoDashesNothingIsAFlag) {
  EXPECT_THAT(respelled("demo-ddp", {"-e", "3", "--", "-e", "3"}),
              ElementsAre("--epochs=3", "--", "-e", "3"));
  EXPECT_EQ(value_in({"--", "--preset", "demo-ddp"}, "--preset", ""), "");
  EXPECT_EQ(value_in({"--preset", "a", "--preset=b"}, "--preset", "c"), "b");
}

}  // namespace
}  // namespace lockstep::trainers::tutorial_spelling_test
