// Short trainings on class folders of photos.
#pragma once

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/training_runs.h"
#include "tests/support/image_files.h"

namespace lockstep::testing {

// One step with eight photos.
inline Arguments resnet_of_any_size(const std::filesystem::path& photos,
                                    const std::filesystem::path& run,
                                    const Arguments& more = {},
                                    const std::string& arch = "resnet18") {
  Arguments line = {"train_resnet", photos.string(), "-a", arch, "-o", run.string()};
  line.insert(line.end(), {"--global-batch-size", "8", "--shards", "4", "--bn-groups", "2"});
  line.insert(line.end(), {"--lr", "0.01"});
  if (std::ranges::find(more, "--max-steps") == more.end()) {
    line.insert(line.end(), {"--max-steps", "1", "-p", "1"});
  }
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

// Small images save most of the time; imagenet_presets_test.cpp trains in the default sizes.
inline Arguments resnet(const std::filesystem::path& photos,
                        const std::filesystem::path& run,
                        const Arguments& more = {},
                        const std::string& arch = "resnet18") {
  Arguments line = {"--train-crop-size", "64", "--val-resize-size", "64", "--val-crop-size", "64"};
  line.insert(line.end(), more.begin(), more.end());
  return resnet_of_any_size(photos, run, line, arch);
}

// Several steps with small images.
inline Arguments resnet20(const std::filesystem::path& photos,
                          const std::filesystem::path& run,
                          const Arguments& more) {
  Arguments line = {"--train-crop-size", "32", "--val-resize-size", "32", "--val-crop-size", "32"};
  line.insert(line.end(), more.begin(), more.end());
  return resnet(photos, run, line, "resnet20");
}

// The lines that a run prints about skipped photos, in order.
inline std::vector<std::string> skips(const std::string& err) {
  std::vector<std::string> lines;
  std::istringstream text(err);
  for (std::string line; std::getline(text, line);) {
    if (line.find("skipped ") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

}  // namespace lockstep::testing
