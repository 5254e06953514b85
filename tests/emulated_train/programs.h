// Short runs of the trainers on the fake device, and on the CPU to compare with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/e2e/small_dataset.h"
#include "tests/e2e/training_runs.h"
#include "tests/emulated_train/flags_of_all_runs.h"

namespace lockstep::testing {

// A random order of streams. Each commit has others (scripts/test.sh).
inline std::string random_order(int number = 0) {
  const char* seed = std::getenv("LOCKSTEP_EMULATION_SEED");
  return "random:" + std::to_string(std::stoll(seed == nullptr ? "1" : seed) + number);
}

// Runs a program on this many ranks. One needs no mpirun.
inline ProgramResult run_on(int ranks, const Arguments& line, const ProgramOptions& options) {
  return ranks == 1 ? run_program(line, options) : run_ranks(ranks, line, options);
}

// Files in MNIST's layout: 160 images, 12 to test with in two batches.
class EmulatedProgram : public ::testing::Test {
 protected:
  EmulatedProgram() { write_small_mnist(dir_ / "mnist", 160, 12); }

  // ConvNet, 8 images per step unless `more` says otherwise.
  Arguments on(const std::string& device,
               const std::string& run,
               const Arguments& more = {}) const {
    Arguments line = {"train_convnet_emulated",
                      (dir_ / data_).string(),
                      "--device",
                      device,
                      "--dataset",
                      "mnist",
                      "--lr",
                      "0.002",
                      "--val-batch-size",
                      "6",
                      "--workers",
                      "0",
                      "-o",
                      (dir_ / run).string()};
    line.insert(line.end(), more.begin(), more.end());
    if (device != "cuda") return line;
    for (const std::string& flag : flags_of_all_runs()) {
      if (std::ranges::find(line, flag) == line.end()) line.push_back(flag);
    }
    return line;
  }
  Arguments on_cuda(const std::string& run, const Arguments& more = {}) const {
    return on("cuda", run, more);
  }

  static void expect_success(const ProgramResult& result) {
    EXPECT_EQ(result.exit_code, 0) << said(result);
  }

  // Losses of a run's steps; of those that were printed.
  std::vector<double> losses(const std::string& run) const {
    std::vector<double> found;
    for (const nlohmann::json& line : read_metrics(dir_ / run)) found.push_back(line.at("loss"));
    return found;
  }

  const TempDir dir_;
  std::string data_ = "mnist";
};

// Runs of four shards, of an image each, in small buckets, on any number of ranks.
class EmulatedRanks : public EmulatedProgram {
 protected:
  ProgramResult run(int ranks, const std::string& name, const Arguments& more) const {
    Arguments line = on_cuda(name,
                             {"--global-batch-size",
                              "4",
                              "--shards",
                              "4",
                              "--bn-groups",
                              "4",
                              "--bucket-cap-mb",
                              "0.02",
                              "--stall-abort",
                              std::to_string(stall_abort_s_)});
    line.insert(line.end(), more.begin(), more.end());
    ProgramOptions options = {.environment = {{"LOCKSTEP_EMULATION_DEVICES", devices_},
                                              {"LOCKSTEP_EMULATION_STREAMS", order_}}};
    options.environment.insert(environment_.begin(), environment_.end());
    return run_on(ranks, line, options);
  }
  void expect_bits_of(const std::string& want, const std::string& name) const {
    SCOPED_TRACE(name);
    expect_same_bits(dir_ / want, dir_ / name);
  }

  std::string order_ = "lazy";
  std::string devices_ = "4";
  int stall_abort_s_ = 60;
  std::map<std::string, std::string> environment_;
};

}  // namespace lockstep::testing
