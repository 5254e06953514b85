// IDX files made for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include <zlib.h>

#include "tests/support/write_file.h"

namespace lockstep::testing {

using Bytes = std::vector<uint8_t>;

// Magic number, extents, data.
inline Bytes idx(uint32_t magic, const std::vector<uint32_t>& extents, const Bytes& data) {
  Bytes bytes;
  const auto put = [&](uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<uint8_t>(value >> shift));
  };
  put(magic);
  for (const uint32_t extent : extents) put(extent);
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

inline Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_gzip(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

// `count` images of 2 x 3 whose pixels count upwards from `first`, labels 0, 1, ....
inline Bytes tiny_images(uint32_t count, uint8_t first = 0) {
  Bytes data(count * 6);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(first + i);
  return idx(0x803, {count, 2, 3}, data);
}
inline Bytes tiny_labels(uint32_t count) {
  Bytes data(count);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i % 10);
  return idx(0x801, {count}, data);
}

// A complete set of 4 training and 3 test images.
inline void write_tiny_set(const std::filesystem::path& folder) {
  write_file(folder / "train-images-idx3-ubyte", tiny_images(4));
  write_file(folder / "train-labels-idx1-ubyte", tiny_labels(4));
  write_gzip(folder / "t10k-images-idx3-ubyte.gz", tiny_images(3, 100));
  write_gzip(folder / "t10k-labels-idx1-ubyte.gz", tiny_labels(3));
}

}  // namespace lockstep::testing
