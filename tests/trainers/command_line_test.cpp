#include "trainers/options/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"

namespace lockstep::trainers::command_line_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::options_of;
using testing::refusal;

TEST(CommandLine, DefaultsOfTrainConvnet) {
  const Options options = options_of("");
  EXPECT_EQ(options.number("epochs"), 3);
  EXPECT_EQ(options.integer("batch-size"), 64);
  EXPECT_EQ(options.integer("val-batch-size"), 250);
  EXPECT_EQ(options.number("lr"), 0.02);
  EXPECT_EQ(options.number("momentum"), 0.9);
  EXPECT_EQ(options.number("weight-decay"), 0.0);
  EXPECT_EQ(options.integer("seed"), 1);
  EXPECT_EQ(options.integer("stall-abort"), 60);
  EXPECT_EQ(options.text("dataset"), "auto");
  EXPECT_EQ(options.find("data"), nullptr);
  EXPECT_EQ(options.find("lr")->origin, Origin::kDefault);
  EXPECT_EQ(options.request, Request::kRun);
  EXPECT_THAT(options.notes, IsEmpty());
}

struct Spelling {
  std::string line;
  std::string flag;
  std::string value;

  friend void PrintTo(const Spelling& spelling, std::ostream* out) { *out << spelling.line; }
};

class CommandLineSpelling : public ::testing::TestWithParam<Spelling> {};

TEST_P(CommandLineSpelling, IsUnderstood) {
  const Options options = options_of(GetParam().line);
  ASSERT_NE(options.find(GetParam().flag), nullptr) << GetParam().line;
  EXPECT_EQ(options.text(GetParam().flag), GetParam().value) << GetParam().line;
  EXPECT_TRUE(options.given(GetParam().flag)) << GetParam().line;
}
INSTANTIATE_TEST_SUITE_P(
    Forms,
    CommandLineSpelling,
    ::testing::Values(Spelling{"-b 32", "batch-size", "32"},
                      Spelling{"-b32", "batch-size", "32"},
                      Spelling{"-b=32", "batch-size", "32"},
                      Spelling{"--b 32", "batch-size", "32"},
                      Spelling{"--batch-size=32", "batch-size", "32"},
                      Spelling{"--batch_size 32", "batch-size", "32"},
                      Spelling{"--batch_size=32", "batch-size", "32"},
                      Spelling{"-b 16 --b 32", "batch-size", "32"},
                      Spelling{"--wd 1e-4", "weight-decay", "1e-4"},
                      Spelling{"--learning-rate .5", "lr", ".5"},
                      Spelling{"--test-batch-size 9", "val-batch-size", "9"},
                      Spelling{"--log-interval 3", "print-freq", "3"},
                      Spelling{"-p 3", "print-freq", "3"},
                      Spelling{"-j4", "workers", "4"},
                      Spelling{"--model toy_net", "arch", "toy_net"},
                      Spelling{"-a toy_net", "arch", "toy_net"},
                      Spelling{"some/dir", "data", "some/dir"},
                      Spelling{"--data some/dir", "data", "some/dir"},
                      Spelling{"--data_path a=b", "data", "a=b"},
                      Spelling{"-q -- -odd", "data", "-odd"},
                      Spelling{"--sync_bn", "sync-bn", "true"},
                      Spelling{"--sync-bn True", "sync-bn", "true"},
                      Spelling{"--sync-bn 0", "sync-bn", "false"},
                      Spelling{"--sync-bn=False", "sync-bn", "false"},
                      Spelling{"--no-sync-bn", "sync-bn", "false"},
                      Spelling{"--no-sync-bn False", "sync-bn", "true"},
                      Spelling{"--sync-bn --no_sync_bn", "sync-bn", "false"},
                      Spelling{"--sync-bn dir", "data", "dir"},
                      Spelling{"-qb 32", "batch-size", "32"},
                      Spelling{"-qb32", "quiet", "true"},
                      Spelling{"-q", "quiet", "true"},
                      Spelling{"--dummy", "dataset", "synthetic"},
                      Spelling{"--dry-run", "max-steps", "1"},
                      Spelling{"--no-cuda", "device", "cpu"},
                      Spelling{"--no-accel", "device", "cpu"},
                      Spelling{"--accum-steps 4", "batches-per-allreduce", "4"},
                      Spelling{"--fusion-threshold-mb 8", "bucket-cap-mb", "8"},
                      Spelling{"--delay-allreduce", "overlap", "false"},
                      Spelling{"--find_unused_parameters=True", "unused", "zero"}));

TEST(CommandLine, ShorthandSwitchedOffMeansNothing) {
  EXPECT_EQ(options_of("--dummy False").text("dataset"), "auto");
  EXPECT_EQ(options_of("--no-dummy").text("dataset"), "auto");
  EXPECT_EQ(refusal("--amp False"), "accepted");
}

struct Refused {
  std::string line;
  std::string what;
  std::string why;
  std::string hint;

  friend void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.line; }
};

class CommandLineRefusal : public ::testing::TestWithParam<Refused> {};

TEST_P(CommandLineRefusal, NamesFlagValueAndWhatIsAllowed) {
  const auto error = testing::usage_error([] { options_of(GetParam().line); });
  ASSERT_TRUE(error.has_value()) << GetParam().line;
  EXPECT_EQ(error->code(), ExitCode::kUsage);
  EXPECT_EQ(error->what(), GetParam().what) << GetParam().line;
  EXPECT_EQ(error->why(), GetParam().why) << GetParam().line;
  EXPECT_EQ(error->hint(), GetParam().hint) << GetParam().line;
}

constexpr const char* kEpochs = "--epochs takes a number from 1 to 1000000";
constexpr const char* kLr = "--lr takes a number from 0 to 1000";
INSTANTIATE_TEST_SUITE_P(
    BadValues,
    CommandLineRefusal,
    ::testing::Values(
        Refused{"--epochs -1", "bad value: --epochs -1", kEpochs, "--epochs 1"},
        Refused{"--start-epoch 1.5",
                "bad value: --start-epoch 1.5",
                "--start-epoch takes a whole number from 0 to 999999",
                "--start-epoch 0"},
        Refused{"--epochs 3x", "bad value: --epochs 3x", kEpochs, "--epochs 3"},
        Refused{"--epochs 99999999999999999999",
                "bad value: --epochs 99999999999999999999",
                kEpochs,
                "--epochs 1000000"},
        Refused{"--lr nan", "bad value: --lr nan", kLr, "--lr 0.02"},
        Refused{"--lr inf", "bad value: --lr inf", kLr, "--lr 0.02"},
        Refused{"--lr -inf", "bad value: --lr -inf", kLr, "--lr 0.02"},
        Refused{"--lr=-1", "bad value: --lr -1", kLr, "--lr 0"},
        Refused{"--lr 1e400", "bad value: --lr 1e400", kLr, "--lr 0.02"},
        Refused{"--lr 0.1,", "bad value: --lr 0.1,", kLr, "--lr 0.02"},
        Refused{"--lr 1e4", "bad value: --lr 1e4", kLr, "--lr 1000"},
        Refused{"--clip-grad-norm 1e-46",  // 0 in f32
                "bad value: --clip-grad-norm 1e-46",
                "--clip-grad-norm takes 0, or a number from 1.2e-38 to 1000000000",
                "--clip-grad-norm 1.2e-38"},
        Refused{"-b 0",
                "bad value: --batch-size 0",
                "--batch-size takes a whole number from 1 to 1000000",
                "--batch-size 1"},
        Refused{"-b0",
                "bad value: --batch-size 0",
                "--batch-size takes a whole number from 1 to 1000000",
                "--batch-size 1"},
        Refused{"--sync-bn=maybe",
                "bad value: --sync-bn maybe",
                "--sync-bn takes True, False, 1, 0 or nothing",
                "train_convnet --help"},
        Refused{"--dataset mnits",
                "bad value: --dataset mnits",
                "--dataset takes one of auto, digits, shapes, mnist, fashion-mnist, cifar10, "
                "imagefolder, synthetic",
                "did you mean --dataset mnist?"},
        Refused{"-a resnet50",
                "bad value: --arch resnet50",
                "--arch takes one of convnet, toy_net",
                "train_resnet --arch resnet50"}));
INSTANTIATE_TEST_SUITE_P(
    BadLines,
    CommandLineRefusal,
    ::testing::Values(
        Refused{"--bacth-size 3",
                "unknown flag --bacth-size",
                "train_convnet has no such flag",
                "did you mean --batch-size?"},
        Refused{"--batch 3",
                "unknown flag --batch",
                "train_convnet has no such flag",
                "did you mean --batch-size?"},
        Refused{
            "-lr 0.1", "unknown flag -lr", "train_convnet has no such flag", "did you mean --lr?"},
        Refused{"--no-synk-bn",
                "unknown flag --no-synk-bn",
                "train_convnet has no such flag",
                "did you mean --no-sync-bn?"},
        Refused{"--no-lr",
                "unknown flag --no-lr",
                "train_convnet has no such flag",
                "did you mean --lr?"},
        Refused{"--zzzzzzzz=1",
                "unknown flag --zzzzzzzz",
                "train_convnet has no such flag",
                "train_convnet --help"},
        Refused{"--lr", "--lr needs a value", kLr, "train_convnet --help shows the defaults"},
        Refused{"--lr=", "--lr needs a value", kLr, "train_convnet --help shows the defaults"},
        Refused{"--lr --epochs 3",
                "--lr needs a value",
                kLr,
                "train_convnet --help shows the defaults"},
        Refused{"--epochs -b 3",
                "--epochs needs a value",
                kEpochs,
                "train_convnet --help shows the defaults"},
        Refused{"dir1 dir2",
                "one argument too many: dir2",
                "only one data directory can be given",
                "train_convnet DIR, or quotes around a name with spaces"},
        Refused{"dir1 --data dir2",
                "two data directories: dir1 and dir2",
                "only one can be given, as DIR or as --data DIR",
                "train_convnet DIR"},
        Refused{"--data dir1 dir2",
                "one argument too many: dir2",
                "only one data directory can be given",
                "train_convnet DIR, or quotes around a name with spaces"},
        Refused{"--train-crop-size 32",
                "--train-crop-size is a flag of train_resnet",
                "train_convnet has no use for it",
                "leave it out"},
        Refused{"-o --overwrite",
                "--output-dir needs a value",
                "--output-dir takes DIR",
                "train_convnet --help shows the defaults"}));

TEST(CommandLine, EmptyDirectoryIsRefused) {
  const std::vector<std::string> arguments = {""};
  EXPECT_THROW(read_options(Program::kTrainConvnet, arguments, [](const char*) { return nullptr; }),
               UsageError);
}

TEST(CommandLine, OrderIsLineThenEnvironmentThenPreset) {
  const Options options = options_of("--preset demo-baseline --lr 0.5",
                                     {{"LOCKSTEP_LR", "0.25"}, {"LOCKSTEP_BATCH_SIZE", "8"}});
  EXPECT_EQ(options.number("lr"), 0.5);
  EXPECT_EQ(options.find("lr")->origin, Origin::kCommandLine);
  EXPECT_EQ(options.integer("batch-size"), 8);
  EXPECT_EQ(options.find("batch-size")->origin, Origin::kEnvironment);
  EXPECT_EQ(options.number("momentum"), 0.0);
  EXPECT_EQ(options.find("momentum")->origin, Origin::kPreset);
  EXPECT_EQ(options.find("seed")->origin, Origin::kDefault);
  EXPECT_FALSE(options.given("momentum"));
}

TEST(CommandLine, RunRecordGetsValuesWithTheirOrigin) {
  const std::vector<ResolvedFlag> flags = options_of("DIR -b 8").resolved();
  const auto find = [&](std::string_view name) {
    const auto found = std::find_if(
        flags.begin(), flags.end(), [&](const ResolvedFlag& flag) { return flag.name == name; });
    return found == flags.end() ? "absent" : found->value + " from " + found->origin;
  };
  EXPECT_EQ(flags.front().name, "data");
  EXPECT_EQ(find("batch-size"), "8 from command line");
  EXPECT_EQ(find("lr"), "0.02 from default");
  EXPECT_EQ(find("max-steps"), "absent");
}

TEST(CommandLine, EnvironmentSetsAnyFlag) {
  const Options options = options_of("",
                                     {{"LOCKSTEP_DATA", "a b"},
                                      {"LOCKSTEP_SYNC_BN", "1"},
                                      {"LOCKSTEP_PRESET", "demo-baseline"},
                                      {"LOCKSTEP_PROGRESS", "bar"},
                                      {"LOCKSTEP_EPOCHS", ""},
                                      {"LOCKSTEP_HELP", "1"},
                                      {"LOCKSTEP_ISA", "v2"}});
  EXPECT_EQ(options.text("data"), "a b");
  EXPECT_TRUE(options.boolean("sync-bn"));
  EXPECT_EQ(options.integer("batch-size"), 32);
  EXPECT_EQ(options.text("progress"), "bar");
  EXPECT_EQ(options.find("epochs")->origin, Origin::kPreset) << "an empty variable is none";
  EXPECT_EQ(options.request, Request::kRun);
  EXPECT_EQ(options_of("--progress line", {{"LOCKSTEP_PROGRESS", "bar"}}).text("progress"), "line");
  EXPECT_EQ(options_of("", {{"LOCKSTEP_DUMMY", "1"}}).text("dataset"), "synthetic");
  EXPECT_EQ(
      options_of("", {{"LOCKSTEP_DUMMY", "1"}, {"LOCKSTEP_DATASET", "digits"}}).text("dataset"),
      "digits");
}

TEST(CommandLine, EnvironmentIsNamedInErrors) {
  EXPECT_EQ(refusal("", {{"LOCKSTEP_LR", "nan"}}),
            "bad value: LOCKSTEP_LR=nan | --lr takes a number from 0 to 1000 | LOCKSTEP_LR=0.02");
  EXPECT_THAT(refusal("", {{"LOCKSTEP_AMP", "maybe"}}), HasSubstr("bad value: LOCKSTEP_AMP=maybe"));
}

TEST(CommandLine, PrintingFlagsComeBeforeErrors) {
  EXPECT_EQ(options_of("-h").request, Request::kHelp);
  EXPECT_EQ(options_of("--epochs -1 --help").request, Request::kHelp);
  EXPECT_EQ(options_of("--help-all").request, Request::kHelpAll);
  EXPECT_EQ(options_of("--version").request, Request::kVersion);
  EXPECT_TRUE(options_of("--version -v").boolean("verbose"));
  EXPECT_EQ(options_of("--check-build").request, Request::kVersion);
}

// Every flag of the stable surface (design.md, "The stable surface") must parse.
TEST(CommandLine, StableSurfaceParses) {
  for (const char* line : {
           "--data DIR",
           "--dataset digits",
           "-a convnet",
           "--preset demo-baseline",
           "--preset ddp-tricks",
           "--epochs 2",
           "--max-steps 5",
           "-b 8",
           "--global-batch-size 64",
           "--lr 0.1",
           "--seed 3",
           "--shards 8",
           "--bn-groups 8",
           "--sync-bn",
           "--val-batch-size 100",
           "--opt-level O0",
           "--opt-level O1",
           "--opt-level O2 --dtype bf16",
           "--opt-level O3 --keep-batchnorm-fp32 True --loss-scale 128.0",
           "--fp16",
           "--amp --dynamic-loss-scale",
           "--explain-precision",
           "--clip-grad-norm 1",
           "--device cpu",
           "--threads 2",
           "--batches-per-allreduce 2",
           "--algorithm tree",
           "--algorithm ring",
           "--algorithm star",
           "--algorithm mpi",
           "--algorithm none",
           "--transport auto",
           "--transport shm",
           "--transport mpi",
           "--transport ipc --device cuda",
           "--bucket-cap-mb 8",
           "--first-bucket-mb 0.5",
           "--no-overlap",
           "--delay-allreduce",
           "--fp16-allreduce",
           "--gradient-predivide-factor 2",
           "--unused zero",
           "--find-unused-parameters",
           "--check-ranks 10",
           "--overwrite",
           "--stall-abort 5",
           "--output-dir out",
           "--deterministic",
           "--resume auto",
           "--resume PATH",
           "--save-freq 2",
           "--save-steps 5",
           "--keep 2",
           "--keep-in-memory",
           "--keep-in-memory-steps 5",
           "--eval-freq 2",
           "--start-epoch 1",
           "--pretrained F",
           "-e",
       }) {
    EXPECT_EQ(refusal(line), "accepted") << line;
  }
}

}  // namespace
}  // namespace lockstep::trainers::command_line_test
