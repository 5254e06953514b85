// Records of runs that were never trained, as their files would show them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "tests/support/temp_dir.h"
#include "trainers/page/viewed_run.h"

namespace lockstep::testing {

using namespace trainers;  // what these helpers are about

// The values in a line of metrics.jsonl.
struct MadeLine {
  int64_t step = 10;
  double loss = 1;
  double acc1 = 50;
  double exposed_s = 0.001;  // steps take 10 ms
  int slowest_rank = 0;
  double skew = 0.01;
  double loader_waited = 0;
};

inline std::string train_line(const MadeLine& line) {
  return fmt::format(R"({{"split":"train","epoch":{},"step":{},"t":{},"loss":{},"acc1":{},)"
                     R"("img_s":6400,"step_s":0.01,"comm_exposed_s":{},"slowest_rank":{},)"
                     R"("skew":{},"loader_waited":{},"loader_busy_with":"decode",)"
                     R"("loss_scale":1,"skipped_steps":0}})",
                     line.step / 100,
                     line.step,
                     0.01 * static_cast<double>(line.step),
                     line.loss,
                     line.acc1,
                     line.exposed_s,
                     line.slowest_rank,
                     line.skew,
                     line.loader_waited);
}

// The record that is written at the start of a run of 300 steps.
inline RunRecord made_record(int ranks) {
  RunRecord record;
  record.argv = {"train_convnet"};
  record.flags = {{"arch", "convnet", "default"}, {"epochs", "3", "default"}};
  record.versions = {{"lockstep", "0.1.0"}};
  for (int rank = 0; rank < ranks; ++rank) {
    record.ranks.push_back({.host = "a", .device = "cpu", .threads = 1, .cores = 64});
  }
  record.plan = {.global_batch = 64,
                 .shards = 8,
                 .algorithm = "tree",
                 .transport = "shm",
                 .wire = "f32",
                 .buckets = {{.tensors = 4, .bytes = 1000}},
                 .steps_per_epoch = 100,
                 .last_step = 300,
                 .same_bits = {1, 2, 4, 8}};
  record.start = std::chrono::system_clock::time_point(std::chrono::seconds(1'767'268'800));
  return record;
}

// Takes each rank's seconds in a step: its own work and exposed communication.
inline ExchangeSummary made_exchange(const std::vector<std::pair<double, double>>& ranks) {
  ExchangeSummary summary;
  for (const auto& [own, exposed] : ranks) {
    summary.ranks.push_back({.seconds = {.own = own, .exposed = exposed}, .images = 640});
  }
  summary.buckets = {{.ready = 0.008, .start = 0.0085, .end = 0.009}};
  return summary;
}

}  // namespace lockstep::testing
