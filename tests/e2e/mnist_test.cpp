// The tutorial's baseline on real MNIST, compared with PyTorch's run with the same weights and
// order. Needs the data: LOCKSTEP_MNIST names the folder with the four IDX files. Skipped without
// it.
#include <cstdlib>

#include <fmt/ranges.h>

#include "data/distributed_sampler.h"
#include "tests/e2e/training_runs.h"
#include "tests/support/golden.h"
#include "tests/support/sha256.h"

namespace lockstep::testing::mnist_test {
namespace {

nlohmann::json torch_baseline() {
  return read_json(golden_folder() / "baseline_seed42.json");
}

TEST(Mnist, SampleOrderIsPyTorchs) {
  const nlohmann::json torch = torch_baseline();
  int64_t epoch = 0;
  for (const nlohmann::json& want : torch.at("epochs")) {
    const std::vector<int64_t> order =
        data::epoch_order({.size = 60000, .seed = 42, .epoch = epoch++});
    EXPECT_EQ(sha256(fmt::format("{}", fmt::join(order, ","))), want.at("order_sha256"));
  }
}

TEST(Mnist, BaselineOverlaysPyTorchs) {
  const char* data = std::getenv("LOCKSTEP_MNIST");
  if (data == nullptr || *data == '\0') GTEST_SKIP() << "LOCKSTEP_MNIST is not set";
  const nlohmann::json torch = torch_baseline();
  const TempDir dir;
  const ProgramResult result = run_program({"train_convnet",
                                            data,
                                            "--preset",
                                            "demo-baseline",
                                            "--seed",
                                            "42",
                                            "--epochs",
                                            "1",
                                            "--shards",
                                            "2",
                                            "--bn-groups",
                                            "1",
                                            "-p",
                                            "1",
                                            "-o",
                                            (dir / "run").string()},
                                           {.limit_s = 300});
  ASSERT_EQ(result.exit_code, 0) << said(result);

  const std::string metrics = read_text(dir / "run" / "metrics.jsonl");
  size_t line = 0;
  for (const nlohmann::json& want : torch.at("first_losses")) {
    const size_t end = metrics.find('\n', line);
    const auto step = nlohmann::json::parse(metrics.substr(line, end - line));
    const double expected = want.get<double>();
    EXPECT_NEAR(step.at("loss").get<double>(), expected, 1e-4 * expected) << step;
    line = end + 1;
  }
  const nlohmann::json want = torch.at("epochs").at(0);
  const nlohmann::json final = read_json(dir / "run" / "run.json").at("final");
  const auto trained = read_metrics(dir / "run").at(1874);  // the last step of the epoch
  EXPECT_NEAR(trained.at("loss_avg").get<double>(), want.at("train_loss").get<double>(), 1e-4);
  EXPECT_EQ(final.at("total"), torch.at("test_total"));
  EXPECT_NEAR(final.at("correct").get<double>(), want.at("test_correct").get<double>(), 50);
}

}  // namespace
}  // namespace lockstep::testing::mnist_test
