// The first images of MNIST, for networks that take a second for a hundred images.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "data/open_dataset.h"
#include "tests/support/temp_dir.h"

namespace lockstep::testing {

namespace detail {

inline void write_idx(const std::filesystem::path& path,
                      const std::vector<int64_t>& extents,
                      const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary);
  const auto word = [&](int64_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(value >> shift));
  };
  word(0x800 + std::ssize(extents));
  for (const int64_t extent : extents) word(extent);
  file.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

inline void write_first(const data::Dataset& from, int64_t count, const std::string& prefix) {
  const data::ImageShape shape = from.image_shape();
  const auto size = static_cast<size_t>(shape.numel());
  std::vector<uint8_t> pixels(static_cast<size_t>(count) * size);
  std::vector<uint8_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    from.read(i, std::span(pixels).subspan(static_cast<size_t>(i) * size, size));
    labels.push_back(static_cast<uint8_t>(from.label(i)));
  }
  write_idx(prefix + "-images-idx3-ubyte", {count, shape.height, shape.width}, pixels);
  write_idx(prefix + "-labels-idx1-ubyte", {count}, labels);
}

}  // namespace detail

// Writes the first images of a data set as files in MNIST's layout.
inline void write_small(const data::DatasetPair& from,
                        const std::filesystem::path& folder,
                        int64_t train,
                        int64_t test) {
  std::filesystem::create_directories(folder);
  detail::write_first(*from.train, train, (folder / "train").string());
  detail::write_first(*from.test, test, (folder / "t10k").string());
}

// The folder of the first 8192 training and 500 test images of the built-in digits. All 10,000 test
// images take longer than the few steps of most tests.
inline std::string small_digits() {
  static const TempDir folder;
  static const std::string path = [] {
    write_small(data::open_dataset("digits", ""), folder.path(), 8192, 500);
    return folder.path().string();
  }();
  return path;
}

// Writes files in MNIST's layout: from real MNIST if LOCKSTEP_MNIST names its folder, otherwise
// from the built-in digits.
inline void write_small_mnist(const std::filesystem::path& folder, int64_t train, int64_t test) {
  const char* real = std::getenv("LOCKSTEP_MNIST");
  const bool have_real = real != nullptr && *real != '\0';
  write_small(data::open_dataset(have_real ? "mnist" : "digits", have_real ? real : ""),
              folder,
              train,
              test);
}

}  // namespace lockstep::testing
