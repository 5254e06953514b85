// Wrong arguments and damaged data: one message of three lines, the right exit code, and no files.
#include <unistd.h>

#include "tests/e2e/training_runs.h"

namespace lockstep::testing::bad_input_test {
namespace {

void expect_refused(const ProgramResult& result, int exit_code, const std::string& what) {
  EXPECT_EQ(result.exit_code, exit_code) << said(result);
  EXPECT_EQ(count_of(result.err, "lockstep: error: "), 1) << result.err;
  EXPECT_EQ(count_of(result.err, "\n  try: "), 1) << result.err;
  EXPECT_NE(result.err.find(what), std::string::npos) << result.err;
}

struct BadArguments {
  Arguments arguments;
  std::string what;
};

TEST(BadInput, ArgumentsAreRefusedBeforeAnythingIsWritten) {
  const BadArguments cases[] = {
      {{"--epochs", "-1"}, "--epochs"},
      {{"--lr", "nan"}, "--lr"},
      {{"-b", "0"}, "-b"},
      {{"--drop-last", "-b", "60001"}, "60001 images"},
      {{"--batch-sise", "4"}, "--batch-size"},
      {{"--bananas"}, "--bananas"},
      {{"--shards", "3", "--bn-groups", "2"}, "--bn-groups"},
      {{"--algorithm", "mpi", "--transport", "shm"}, "--transport shm"},
      {{"--algorithm", "mpi", "--fp16-allreduce"}, "--fp16-allreduce"},
      {{"--algorithm", "none", "--check-ranks", "5"}, "--check-ranks 5"},
      {{"-b", "6", "--bn-groups", "4", "--shards", "4", "--batches-per-allreduce", "2"},
       "12 images per step do not make 8 equal parts"},
      {{"--transport", "threads"}, "--parallel dp needs --devices N"},
      {{"--opt-level", "O4"}, "--opt-level O4"},
      {{"--eval-freq", "2", "--lr-scheduler", "plateau"}, "--eval-freq would change nothing"},
      {{"-c", "a.toml", "--config", "b.toml"}, "--config is given twice"},
      {{"-c=a.toml", "-c=b.toml"}, "--config is given twice"},
      {{"--evaluate"}, "--pretrained FILE or --resume PATH"},
      {{"--resume", "auto", "--overwrite"}, "--overwrite contradict"},
      {{"--autotune"}, "--autotune is for --device cuda"},
      {{"--plan-file", "p.json"}, "--plan-file is for --device cuda"},
      {{"--start-epoch", "3"}, "--start-epoch 3 leaves nothing"},
      {{"--dataset", "mnist", "--data", "/nonexistent"}, "/nonexistent"},
  };
  for (const BadArguments& bad : cases) {
    const TempDir dir;
    SCOPED_TRACE(bad.arguments[0]);
    const ProgramResult result = run_program(convnet(dir / "run", bad.arguments));
    const bool data = bad.arguments[0] == "--dataset";
    expect_refused(result, data ? 3 : 2, bad.what);
    EXPECT_FALSE(std::filesystem::exists(dir / "run"));
  }
}

TEST(BadInput, RankZeroSpeaksForAll) {
  const TempDir dir;
  expect_refused(run_ranks(3, convnet(dir / "run", {"--lr", "fast"})), 2, "--lr");
  expect_refused(
      run_ranks(3, convnet(dir / "run", {"--data", (dir / "no").string()})), 3, "--data names");
  expect_refused(
      run_ranks(3, convnet(dir / "run", {"-b", "60000", "--drop-last"})), 2, "180000 images");
}

TEST(BadInput, OutputThatCannotBeWritten) {
  const TempDir dir;
  write_text(dir / "file", "not a folder");
  expect_refused(run_program(convnet(dir / "file")), 5, "file");
  expect_refused(run_ranks(2, convnet(dir / "file" / "deeper")), 5, "file");
  EXPECT_EQ(read_text(dir / "file"), "not a folder");
}

TEST(BadInput, ATruncatedIdxFileIsNamed) {
  const TempDir dir;
  for (const char* name : {"train-images-idx3-ubyte",
                           "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte",
                           "t10k-labels-idx1-ubyte"}) {
    write_text(dir / name, std::string("\0\0\10\3\0\0\0\2\0\0\0\34\0\0\0\34 short", 22));
  }
  const ProgramResult result = run_program(convnet(dir / "run", {"--data", dir.path().string()}));
  expect_refused(result, 3, "train-images-idx3-ubyte");
  expect_refused(result, 3, "again; --data names another folder, --dataset digits is built in\n");
  EXPECT_FALSE(std::filesystem::exists(dir / "run"));
}

}  // namespace
}  // namespace lockstep::testing::bad_input_test
