// Short real trainings for end-to-end tests.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/small_dataset.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_dir.h"

namespace lockstep::testing {

using Arguments = std::vector<std::string>;

// train_convnet on few digits, with a few steps, unless `more` says otherwise.
inline Arguments convnet(const std::filesystem::path& run, const Arguments& more = {}) {
  Arguments line = {"train_convnet", "--max-steps", "20", "-o", run.string()};
  const auto names_data = [](const std::string& word) {
    return word == "--data" || word == "--dataset";
  };
  if (std::ranges::none_of(more, names_data)) {
    line.insert(line.end(), {"--data", small_digits(), "--dataset", "mnist"});
  }
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

inline nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(read_text(path));
}

// The lines of metrics.jsonl.
inline std::vector<nlohmann::json> read_metrics(const std::filesystem::path& run) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(read_text(run / "metrics.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

inline std::string weights(const std::filesystem::path& run) {
  return (run / "checkpoints" / "last.safetensors").string();
}

inline std::string said(const ProgramResult& result) {
  return "exit " + std::to_string(result.exit_code) + "\n" + result.out + result.err;
}

// The event file of a folder. Fails unless there is exactly one.
inline std::string events_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().filename().string().starts_with("events.out.")) files.push_back(file.path());
  }
  EXPECT_EQ(files.size(), 1U) << folder;
  return files.empty() ? "" : read_text(files.front());
}

// The losses and counts of metrics.jsonl, without times.
inline std::vector<nlohmann::json> learning_curve(const std::filesystem::path& run) {
  std::vector<nlohmann::json> lines;
  for (const nlohmann::json& all : read_metrics(run)) {
    nlohmann::json kept;
    for (const char* name : {"split",
                             "epoch",
                             "step",
                             "loss",
                             "loss_avg",
                             "lr",
                             "acc1",
                             "acc5",
                             "correct",
                             "digest"}) {
      if (all.contains(name)) kept[name] = all.at(name);
    }
    lines.push_back(kept);
  }
  return lines;
}

// Compares weights, learning curves and digests.
inline void expect_same_bits(const std::filesystem::path& want, const std::filesystem::path& got) {
  const ProgramResult difference = run_program({"lockstep", "diff", weights(want), weights(got)});
  EXPECT_EQ(difference.exit_code, 0) << said(difference);
  EXPECT_EQ(learning_curve(got), learning_curve(want));
  const nlohmann::json digest = read_json(want / "run.json").at("digest");
  EXPECT_TRUE(digest.is_string()) << want << " did not come to its end";
  EXPECT_EQ(read_json(got / "run.json").at("digest"), digest);
}

}  // namespace lockstep::testing
