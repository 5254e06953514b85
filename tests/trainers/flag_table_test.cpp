#include "trainers/options/flag_table.h"

#include <set>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/words.h"
#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/run_request.h"
#include "trainers/options/parser.h"

namespace lockstep::trainers::flag_table_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::options_of;
using testing::refusal;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A valid value of the flag.
std::string example_value(const Flag& flag) {
  if (flag.kind == FlagKind::kChoice) {
    return std::string(split_words(flag.choices.convnet, '|').front());
  }
  if (flag.kind == FlagKind::kBool) return "True";
  if (flag.kind == FlagKind::kString) return "x";
  return fmt::format("{}", flag.range.max);
}

TEST(FlagTable, NamesAreUnique) {
  std::set<std::string> seen;
  for (const Flag& flag : flag_table()) {
    EXPECT_TRUE(seen.insert(fmt::format("--{}", flag.name)).second) << flag.name;
    for (const std::string_view alias : split_words(flag.aliases, ' ')) {
      EXPECT_TRUE(seen.insert(std::string(alias)).second) << alias;
    }
  }
  for (const ForeignFlag& flag : foreign_flags()) {
    EXPECT_TRUE(seen.insert(fmt::format("--{}", flag.name)).second) << flag.name;
  }
}

TEST(FlagTable, RowsAreComplete) {
  for (const Flag& flag : flag_table()) {
    EXPECT_NE(flag.help.empty(), flag.means.empty()) << flag.name;
    const bool number = flag.kind == FlagKind::kInt || flag.kind == FlagKind::kFloat;
    EXPECT_EQ(number, flag.range.max > flag.range.min) << flag.name;
    EXPECT_TRUE(flag.kind != FlagKind::kString || !flag.takes.empty()) << flag.name;
    EXPECT_TRUE(flag.kind != FlagKind::kChoice || !flag.choices.resnet.empty()) << flag.name;
    EXPECT_TRUE(flag.means.empty() || flag.kind == FlagKind::kBool) << flag.name;
    EXPECT_NE(find_flag(fmt::format("--{}", flag.name)), nullptr) << flag.name;
  }
}

TEST(FlagTable, DefaultsAreAllowed) {
  for (const Flag& flag : flag_table()) {
    if (flag.initial.convnet.empty()) continue;
    EXPECT_NO_THROW(check_flag_value(flag, Program::kTrainConvnet, flag.name, flag.initial.convnet))
        << flag.name;
  }
}

TEST(FlagTable, EveryFlagIsAccepted) {
  for (const Flag& flag : flag_table()) {
    if (flag.resnet_only || flag.name == "config") continue;
    EXPECT_EQ(refusal(fmt::format("--{} {}", flag.name, example_value(flag))), "accepted")
        << flag.name;
  }
}

// Every flag must do what it promises. Some are refused in combination with others or on this
// machine, but none because it is unfinished.
TEST(FlagTable, NoFlagIsUnfinished) {
  for (const Program program : {Program::kTrainConvnet, Program::kTrainResnet}) {
    std::string said = help_all_text(program);
    for (const Flag& flag : flag_table()) {
      if (!flag.is_for(program) || flag.name == "config" || only_prints(flag)) continue;
      try {
        make_run_request(
            options_of(fmt::format("--{} {}", flag.name, example_value(flag)), {}, program));
      } catch (const UsageError& error) {
        said += fmt::format("{} {} {}\n", error.what(), error.why(), error.hint());
      }
    }
    for (const char* words : {"not built", "not yet", "unfinished", "unsupported"}) {
      EXPECT_THAT(said, Not(HasSubstr(words)));
    }
  }
}

TEST(FlagTable, EveryFlagHasAnEnvironmentVariable) {
  for (const Flag& flag : flag_table()) {
    if (flag.resnet_only || !flag.means.empty() || only_prints(flag)) continue;
    if (flag.name == "config") continue;  // reads a file
    const Options options = options_of("", {{environment_name(flag), example_value(flag)}});
    ASSERT_NE(options.find(flag.name), nullptr) << flag.name;
    EXPECT_EQ(options.find(flag.name)->origin, Origin::kEnvironment) << flag.name;
  }
}

// Each flag of pytorch/examples' main.py and Apex's main_amp.py must be accepted or explained.
TEST(FlagTable, NoFlagOfMainPyOrApexIsUnknown) {
  for (const char* line : {"-a convnet",
                           "--arch convnet",
                           "-j 4",
                           "--workers 4",
                           "--epochs 90",
                           "--start-epoch 1",
                           "-b 256",
                           "--batch-size 256",
                           "--lr .1",
                           "--momentum .9",
                           "--wd 1e-4",
                           "--weight-decay 1e-4",
                           "-p 10",
                           "--print-freq 10",
                           "--resume x",
                           "-e",
                           "--evaluate",
                           "--pretrained",
                           "--world-size 2",
                           "--rank 1",
                           "--dist-url tcp://224.66.41.62:23456",
                           "--gpu 0",
                           "--dist-backend x",
                           "--multiprocessing-distributed",
                           "--seed 1",
                           "--no-accel",
                           "--dummy",
                           "--prof 10",
                           "--deterministic",
                           "--local_rank 0",
                           "--sync_bn",
                           "--opt-level O0",
                           "--keep-batchnorm-fp32 True",
                           "--loss-scale 1",
                           "--channels-last 1",
                           "--fp16",
                           "--b 256",
                           "--no-cuda",
                           "--dynamic-loss-scale"}) {
    EXPECT_THAT(refusal(line), ::testing::Not(HasSubstr("unknown flag"))) << line;
  }
}

TEST(ForeignFlags, HarmlessOnesLeaveANote) {
  const Options options = options_of(
      "--multiprocessing-distributed --gpu 0 --master_addr 10.0.0.7 --master_port 80 "
      "--local_rank=0 --dist-backend nccl --channels-last True DIR");
  EXPECT_EQ(options.notes.size(), 6U);
  EXPECT_EQ(options.notes[0],
            "note: --multiprocessing-distributed (main.py) changes nothing: ranks are started and "
            "numbered by the launcher; mpirun -np N or torchrun --no-python starts N ranks");
  for (const std::string& note : options.notes) EXPECT_EQ(note.find('\n'), std::string::npos);
  EXPECT_EQ(options.text("data"), "DIR");
}

// The rank and the number of ranks are given by hand, as with main.py. They need not be the same on
// all ranks.
TEST(FlagTable, WhereRanksMeetIsARanksOwnAffair) {
  const Options options =
      options_of("--dist-url tcp://node7:29500 --rank -1 --world_size=4 --rendezvous-timeout 5");
  EXPECT_EQ(options.text("dist-url"), "tcp://node7:29500");
  EXPECT_EQ(options.integer("rank"), -1);
  EXPECT_EQ(options.integer("world-size"), 4);
  EXPECT_EQ(options.integer("rendezvous-timeout"), 5);
  std::vector<std::string_view> own;
  for (const Flag& flag : flag_table()) {
    if (is_ranks_own(flag)) own.push_back(flag.name);
  }
  EXPECT_THAT(own, ::testing::ElementsAre("dist-url", "rank", "world-size", "local-rank"));
}

TEST(ForeignFlags, OnesThatWouldMatterAreRefused) {
  EXPECT_EQ(refusal("--nnodes 2"),
            "--nnodes 2 (torchrun) is not available here | ranks are started and numbered by the "
            "launcher | mpirun -np 8 --host a:4,b:4 or torchrun's own flags use two hosts");
  for (const char* line : {"--node-rank 1", "--model-ema-steps 32", "--log-dir d"}) {
    EXPECT_THAT(refusal(line), HasSubstr("is not available here")) << line;
  }
  EXPECT_EQ(refusal("--model-ema-steps 1"), "accepted");
  EXPECT_THAT(refusal("--gpu"), HasSubstr("--gpu needs a value"));
}

TEST(Help, ShortPageFits) {
  for (const Program program : {Program::kTrainConvnet, Program::kTrainResnet}) {
    const std::string text = help_text(program);
    const auto lines = lines_of(text);
    EXPECT_LE(lines.size(), 45U) << text;
    for (const std::string& line : lines) EXPECT_LE(line.size(), 100U) << line;
    for (int g = 0; g < kFlagGroups; ++g) {
      const auto heading = fmt::format("{}:", name_of(static_cast<FlagGroup>(g)));
      EXPECT_EQ(std::count(lines.begin(), lines.end(), heading), 1) << heading;
    }
    ASSERT_GE(lines.size(), 4U);
    EXPECT_EQ(lines[lines.size() - 4], "Examples:");
  }
  EXPECT_THAT(help_text(Program::kTrainConvnet), HasSubstr("  -b, --b, --batch-size N"));
}

TEST(Help, LongPageHasEveryFlagAndAlias) {
  const std::string text = help_all_text(Program::kTrainConvnet);
  for (const std::string& line : lines_of(text)) EXPECT_LE(line.size(), 100U) << line;
  for (const Flag& flag : flag_table()) {
    const bool shown = text.find(std::string(flag.name)) != std::string::npos;
    EXPECT_EQ(shown, !flag.resnet_only) << flag.name;
    for (const std::string_view alias : split_words(flag.aliases, ' ')) {
      EXPECT_TRUE(flag.resnet_only || text.find(std::string(alias)) != std::string::npos) << alias;
    }
  }
}

TEST(Help, LongPageHasSpellingsOfTheProgramsOwnPresets) {
  EXPECT_THAT(help_all_text(Program::kTrainConvnet), HasSubstr("With --preset demo-baseline:"));
  EXPECT_THAT(help_all_text(Program::kTrainResnet), Not(HasSubstr("With --preset demo-baseline:")));
}

TEST(Help, ExamplesAreAccepted) {
  EXPECT_EQ(refusal("data --dataset mnist --epochs 5 --b 128"), "accepted");
  EXPECT_EQ(refusal("--global-batch-size 512 --shards 8 --bn-groups 8 -o runs/a"), "accepted");
}

}  // namespace
}  // namespace lockstep::trainers::flag_table_test
