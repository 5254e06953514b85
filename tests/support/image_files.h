// The golden image files, and folders of them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/codecs/decode_image.h"
#include "tests/support/golden.h"
#include "tests/support/write_file.h"

namespace lockstep::testing {

inline std::vector<uint8_t> bytes_of(const Tensor& tensor) {
  const auto span = tensor.span<uint8_t>();
  return {span.begin(), span.end()};
}

inline std::vector<uint8_t> image_file(const std::string& name) {
  return bytes_of(golden_case("image_files", name).tensor("file"));
}

inline data::Image decode(const std::vector<uint8_t>& file, data::ChooseRegion choose) {
  data::Image image;
  data::decode_image(std::as_bytes(std::span(file)), choose, image);
  return image;
}

inline data::Image decode(const std::vector<uint8_t>& file) {
  return decode(file, [](const data::ImageSize& size) { return data::whole(size); });
}

// Writes train and val with the classes "ants" and "bees", each with `images` images of several
// file types.
inline void write_image_folders(const std::filesystem::path& root, int images) {
  const std::vector<std::string> kinds = {"jpeg_420", "png_rgb", "jpeg_progressive", "jpeg_gray"};
  for (const char* split : {"train", "val"}) {
    for (const char* name : {"ants", "bees"}) {
      for (int i = 0; i < images; ++i) {
        const auto kind = static_cast<size_t>(i + (name[0] == 'b' ? 1 : 0)) % kinds.size();
        write_file(root / split / name / (std::to_string(i) + ".jpg"), image_file(kinds[kind]));
      }
    }
  }
}

}  // namespace lockstep::testing
