#include "bench/allreduce/options.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep::bench::options_test {
namespace {

using Arguments = std::vector<std::string>;
using ::testing::HasSubstr;

std::string refusal(const Arguments& arguments) {
  try {
    read_options(arguments);
  } catch (const UsageError& error) {
    return format_error(error);
  }
  return "accepted";
}

TEST(BenchOptions, DefaultsAreNcclTests) {
  const BenchOptions options = read_options({});
  EXPECT_EQ(options.sizes.min_bytes, 32 << 20);
  EXPECT_EQ(options.sizes.max_bytes, 32 << 20);
  EXPECT_EQ(options.sizes.step_bytes, 1 << 20);
  EXPECT_EQ(options.sizes.step_factor, 1);
  EXPECT_EQ(options.iterations, 20);
  EXPECT_EQ(options.warmup_iterations, 1);
  EXPECT_EQ(options.checks, 1);
  EXPECT_EQ(options.dtype, Dtype::kF32);
  EXPECT_EQ(options.algorithms, std::vector{Algorithm::kTree});
  EXPECT_EQ(options.connect.transport, comm::Transport::kAuto);
  EXPECT_EQ(options.connect.stall_abort, std::chrono::seconds(60));
  EXPECT_EQ(options.json_path, "");
  EXPECT_EQ(options.help, "");
}

TEST(BenchOptions, ShortFlagsAsNcclTestsTakesThem) {
  const BenchOptions options = read_options(
      {"-b", "8",  "-e128M", "-f", "2",        "-n", "5",   "-w0", "-c",       "3",  "-a",
       "1",  "-z", "0",      "-d", "bfloat16", "-o", "sum", "-J",  "out.json", "-i", "4K"});
  EXPECT_EQ(options.sizes.min_bytes, 8);
  EXPECT_EQ(options.sizes.max_bytes, 128 << 20);
  EXPECT_EQ(options.sizes.step_bytes, 4096);
  EXPECT_EQ(options.sizes.step_factor, 2);
  EXPECT_EQ(options.iterations, 5);
  EXPECT_EQ(options.warmup_iterations, 0);
  EXPECT_EQ(options.checks, 3);
  EXPECT_EQ(options.rank_time, RankTime::kMean);
  EXPECT_EQ(options.blocking, Blocking::kNone);
  EXPECT_EQ(options.dtype, Dtype::kBF16);
  EXPECT_EQ(options.json_path, "out.json");
}

TEST(BenchOptions, LongFlagsAndOurOwn) {
  const BenchOptions options = read_options({"--minbytes=1K",
                                             "--maxbytes",
                                             "1K",
                                             "--iters=7",
                                             "--iters=9",
                                             "--datatype=half",
                                             "--dist-backend",
                                             "ring,tree,star,mpi",
                                             "--transport",
                                             "mpi",
                                             "--stall-abort",
                                             "5"});
  EXPECT_EQ(options.sizes.max_bytes, 1024);
  EXPECT_EQ(options.iterations, 9) << "the last one counts";
  EXPECT_EQ(options.dtype, Dtype::kF16);
  EXPECT_EQ(
      options.algorithms,
      (std::vector{Algorithm::kRing, Algorithm::kTree, Algorithm::kStar, Algorithm::kLibrary}));
  EXPECT_EQ(options.connect.transport, comm::Transport::kMpi);
  EXPECT_EQ(options.connect.stall_abort, std::chrono::seconds(5));
}

TEST(BenchOptions, ForeignFlagsThatChangeNothingAreAccepted) {
  const Arguments arguments = {"-t", "1", "-g", "1", "-m", "1", "-N", "1", "-p", "1",
                               "-r", "3", "-y", "1", "-T", "0", "-G", "0", "-C", "0",
                               "-S", "0", "-R", "2", "-x", "1", "-D", "0", "-V", "8",
                               "-M", "0", "-u", "0", "-I", "0", "-K", "0"};
  EXPECT_EQ(refusal(arguments), "accepted");
}

TEST(BenchOptions, ForeignFlagsThatWouldChangeSomethingAreRefused) {
  for (const Arguments& pair : {Arguments{"-t", "2"},
                                {"-g", "8"},
                                {"-m", "2"},
                                {"-N", "0"},
                                {"-o", "prod"},
                                {"-T", "9"},
                                {"-G", "1"},
                                {"-C", "1"},
                                {"-S", "1"},
                                {"-D", "1"},
                                {"-M", "1"},
                                {"-u", "1"},
                                {"-I", "1"},
                                {"-K", "1"}}) {
    const std::string text = refusal(pair);
    EXPECT_THAT(text, HasSubstr("error: bench_allreduce has no --")) << pair[0];
    EXPECT_THAT(text, HasSubstr(" " + pair[1] + "\n  why: ")) << pair[0];
    EXPECT_THAT(text, HasSubstr("\n  try: ")) << pair[0];
  }
}

struct Bad {
  Arguments arguments;
  std::string said;
};

TEST(BenchOptions, BadValuesAreNamed) {
  const Bad cases[] = {
      {{"-b", "5X"}, "bad value: --minbytes 5X"},
      {{"-n", "0"}, "bad value: --iters 0"},
      {{"-n", "-5"}, "bad value: --iters -5"},
      {{"-f", "1.5"}, "bad value: --stepfactor 1.5"},
      {{"-i", "0", "-b", "8"}, "--stepbytes 0 never reaches the largest size"},
      {{"-a", "4"}, "bad value: --average 4"},
      {{"-z", "x"}, "bad value: --blocking x"},
      {{"-d", "double"}, "float, half, bfloat16"},
      {{"--algorithms", "tree,oak"}, "bad value: --algorithms oak"},
      {{"--algorithms", "none"}, "bad value: --algorithms none"},
      {{"--algorithms", "tree,"}, "takes tree, ring, star, "},
      {{"--transport", "nccl"}, "auto, shm, mpi"},
      {{"--stall-abort", "0"}, "whole number from 1 to 86400"},
      {{"-b", "2M", "-e", "1M"}, "no size from 2097152 to 1048576 bytes"},
      {{"-J", ""}, "bad value: --output_file"},
      {{"-b"}, "--minbytes"},
      {{"--iter", "3"}, "try: --iters"},
      {{"extra"}, "unknown argument: extra"},
  };
  for (const Bad& bad : cases) {
    const std::string text = refusal(bad.arguments);
    EXPECT_THAT(text, HasSubstr(bad.said)) << bad.arguments[0];
    EXPECT_THAT(text, HasSubstr("\n  try: ")) << bad.arguments[0];
  }
}

TEST(BenchOptions, HelpListsWhatMatters) {
  const std::string help = read_options({"--help"}).help;
  for (const char* flag : {"--minbytes SIZE=32M",
                           "--iters N=20",
                           "--average 0-3=3",
                           "--algorithms",
                           "--transport NAME=auto",
                           "-J"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
}

// -b is the batch of one benchmark and the smallest size of another.
TEST(BenchOptions, TheAdviceOnErrorsNamesFlagsOfThisProgram) {
  EXPECT_EQ(allreduce_advice(Remedy::kSmallerBatch), "-e sets the largest size");
  const std::string help = read_options({"--help"}).help;
  for (int i = 0; i <= static_cast<int>(kLastRemedy); ++i) {
    std::istringstream words{std::string(allreduce_advice(static_cast<Remedy>(i)))};
    for (std::string word; words >> word;) {
      if (!word.starts_with('-')) continue;
      EXPECT_THAT(help, HasSubstr("  " + word)) << i;
    }
  }
  for (const Remedy remedy : {Remedy::kMpi, Remedy::kAlgorithm, Remedy::kLongerWait}) {
    EXPECT_NE(allreduce_advice(remedy), "") << static_cast<int>(remedy);
  }
  EXPECT_EQ(allreduce_advice(Remedy::kCpu), "");
}

}  // namespace
}  // namespace lockstep::bench::options_test
