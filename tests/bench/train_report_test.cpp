#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/train/report.h"

namespace lockstep::bench::train_report_test {
namespace {

using ::testing::HasSubstr;

// Two ranks of batch 10, two iterations of two steps.
SyntheticReport report() {
  SyntheticReport report;
  report.options.arch = "resnet20";
  report.options.batch_size = 10;
  report.options.batches_per_iteration = 2;
  report.network = model_options(report.options);
  report.run.batch.ranks = 2;
  report.run.threads = 3;
  report.run.batch.images = 20;
  report.run.transport = "shm";
  report.parameters = 272474;
  report.first_step_s = 0.5;
  report.iteration_s = {1, 0.5};
  report.step_s = {0.4, 0.6, 0.3, 0.2};
  report.seconds = {{.own = 4, .exposed = 0.4, .hidden = 0.1}, {.own = 4, .exposed = 0.8}};
  report.loss = 2.25;
  report.peak_rss_mib = {100, 120.5};
  return report;
}

TEST(SyntheticReport, SaysWhatHorovodSays) {
  EXPECT_THAT(opening_text(report()), HasSubstr("Model: resnet20 (272474 parameters)\n"));
  EXPECT_THAT(opening_text(report()), HasSubstr("\nBatch size: 10\nNumber of CPUs: 2\n"));
  EXPECT_EQ(iteration_text(report(), 0), "Iter #0: 20.0 img/sec per CPU\n");
  EXPECT_EQ(iteration_text(report(), 1), "Iter #1: 40.0 img/sec per CPU\n");
  // 1.96 times the deviation of 20 and 40 from their mean.
  EXPECT_THAT(closing_text(report()), HasSubstr("Img/sec per CPU: 30.0 +-19.6\n"));
  EXPECT_THAT(closing_text(report()), HasSubstr("Total img/sec on 2 CPU(s): 60.0 +-39.2\n"));
  EXPECT_THAT(closing_text(report()),
              HasSubstr("exchange exposed 150.0 ms, hidden 12.5 ms; peak "));
}

TEST(SyntheticReport, JsonForMachines) {
  const std::string text = json_text(report());
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json.at("images_per_s"), 60);
  EXPECT_EQ(json.at("images_per_s_by_iteration"), nlohmann::json({40, 80}));
  EXPECT_NEAR(json.at("step_ms_mean").get<double>(), 375, 1e-9);
  EXPECT_NEAR(json.at("step_ms_median").get<double>(), 350, 1e-9);
  EXPECT_NEAR(json.at("comm_exposed_ms").get<double>(), 150, 1e-9);
  EXPECT_EQ(json.at("first_step_s"), 0.5);
  EXPECT_EQ(json.at("peak_rss_mib"), 120.5);
  EXPECT_EQ(json.at("peak_rss_mib_by_rank"), nlohmann::json({100, 120.5}));
  EXPECT_EQ(json.at("loss"), 2.25);
  EXPECT_EQ(json.at("arch"), "resnet20");
  EXPECT_EQ(json.at("parameters"), 272474);
  EXPECT_EQ(json.at("image"), nlohmann::json({3, 32, 32}));
  EXPECT_EQ(json.at("batch_size"), 10);
  EXPECT_EQ(json.at("global_batch"), 20);
  EXPECT_EQ(json.at("ranks"), 2);
  EXPECT_EQ(json.at("threads"), 3);
  EXPECT_EQ(json.at("algorithm"), "tree");
  EXPECT_EQ(json.at("transport"), "shm");
}

}  // namespace
}  // namespace lockstep::bench::train_report_test
