// Writes bytes to a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

namespace lockstep::testing {

// Also creates the folders of `path`.
inline void write_file(const std::filesystem::path& path, const std::vector<uint8_t>& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

}  // namespace lockstep::testing
