// The input as a file, for readers that take a path.
#pragma once

#include <filesystem>
#include <string_view>

#include "tests/support/temp_dir.h"

namespace lockstep::fuzz {

// One folder a process: a fuzzer makes thousands of inputs a second.
inline const std::filesystem::path& scratch() {
  static const testing::TempDir folder;
  return folder.path();
}

inline std::filesystem::path as_file(std::string_view input, std::string_view name = "input") {
  const std::filesystem::path path = scratch() / name;
  testing::write_text(path, input);
  return path;
}

}  // namespace lockstep::fuzz
