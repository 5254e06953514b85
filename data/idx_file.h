// One IDX file: header, checks and bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace lockstep::data {

struct IdxFile {
  std::vector<int64_t> extents;  // images: count, rows, columns; labels: count
  std::vector<uint8_t> bytes;
};

// Reads unsigned bytes in `rank` dimensions. Errors: DataError, as IdxDataset says.
IdxFile read_idx(const std::filesystem::path& path, int rank);

}  // namespace lockstep::data
