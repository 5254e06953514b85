// bench_allreduce as users start it.
#include "tests/e2e/training_runs.h"

namespace lockstep::testing::bench_allreduce_test {
namespace {

Arguments bench(const Arguments& more) {
  Arguments line = {"bench_allreduce", "-n", "3"};
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

class BenchAllReduce : public ::testing::TestWithParam<int> {};

TEST_P(BenchAllReduce, MeasuresARangeWithoutAWrongElement) {
  const TempDir dir;
  const std::string file = (dir / "out.json").string();
  const ProgramResult result = run_ranks(GetParam(),
                                         bench({"-b",
                                                "4",
                                                "-e",
                                                "64K",
                                                "-f",
                                                "128",
                                                "-c",
                                                "2",
                                                "--algorithms",
                                                "tree,ring,star",
                                                "-J",
                                                file}));
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(count_of(result.out, "# Out of bounds values : 0 OK\n"), 3) << result.out;
  EXPECT_EQ(count_of(result.out, "#  Rank "), GetParam());
  EXPECT_EQ(count_of(result.out, " float     sum "), 9);

  const nlohmann::json json = read_json(file);
  EXPECT_EQ(std::ssize(json.at("config").at("devices")), GetParam());
  EXPECT_EQ(json.at("config").at("transport"), GetParam() == 1 ? "none" : "shm");
  ASSERT_EQ(json.at("results").size(), 9U);
  for (const auto& row : json.at("results")) {
    EXPECT_EQ(row.at("in_place").at("nwrong"), 0);
    EXPECT_EQ(row.at("out_of_place").at("nwrong"), 0);
    EXPECT_EQ(row.at("in_place_per_iter").at("times_us").size(), 3U);
  }
}

TEST_P(BenchAllReduce, SumsSixteenBitFloatsAndOverMpi) {
  for (const Arguments& more : {Arguments{"-d", "half"},
                                {"-d", "bfloat16"},
                                {"--algorithms", "tree,mpi"},
                                {"--transport", "mpi", "--algorithms", "tree,mpi"}}) {
    Arguments line = bench({"-b", "4K", "-e", "4K"});
    line.insert(line.end(), more.begin(), more.end());
    const ProgramResult result = run_ranks(GetParam(), line);
    EXPECT_EQ(result.exit_code, 0) << said(result);
    EXPECT_EQ(count_of(result.out, "# Out of bounds values : 0 OK\n"),
              more.back() == "tree,mpi" ? 2 : 1);
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, BenchAllReduce, ::testing::Values(1, 2, 3));

void expect_refused(const ProgramResult& result, int exit_code) {
  EXPECT_EQ(result.exit_code, exit_code) << said(result);
  EXPECT_EQ(count_of(result.err, "lockstep: error: "), 1) << result.err;
  EXPECT_EQ(count_of(result.err, "\n  try: "), 1) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(BenchAllReduceRefuses, BadFlagsOnceWithExit2) {
  for (const Arguments& arguments : {Arguments{"-b", "5X"}, {"-t", "2"}, {"--bananas"}}) {
    expect_refused(run_program(bench(arguments)), 2);
  }
  expect_refused(run_ranks(2, bench({"--algorithms", "oak"})), 2);
}

TEST(BenchAllReduceRefuses, ATypeThatTheAlgorithmHasNot) {
  const ProgramResult result = run_ranks(2, bench({"--algorithms", "mpi", "-d", "half"}));
  expect_refused(result, 2);
  EXPECT_EQ(count_of(result.err, "; --algorithms names it\n"), 1) << result.err;
}

TEST(BenchAllReduceRefuses, AFolderThatIsMissingBeforeMeasuring) {
  const TempDir dir;
  const ProgramResult result =
      run_ranks(2, bench({"-b", "4", "-e", "4", "-J", (dir / "no" / "out.json").string()}));
  expect_refused(result, 5);
  EXPECT_EQ(count_of(result.err, "cannot write "), 1) << result.err;
}

TEST(BenchAllReduceRefuses, RanksWithDifferentArguments) {
  const std::string program = path_of_program("bench_allreduce");
  const ProgramResult result =
      run_ranks(1, {program, "-b", "4", "-e", "4", ":", "-np", "1", program, "-b", "4", "-e", "8"});
  expect_refused(result, 2);
}

}  // namespace
}  // namespace lockstep::testing::bench_allreduce_test
