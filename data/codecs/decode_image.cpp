#include "data/codecs/decode_image.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace lockstep::data {
namespace {

template <size_t kSize>
bool begins_with(std::span<const std::byte> file, const std::array<uint8_t, kSize>& magic) {
  return file.size() >= kSize &&
         std::equal(magic.begin(), magic.end(), file.begin(), [](uint8_t want, std::byte got) {
           return std::byte{want} == got;
         });
}

}  // namespace

void require_codecs() {}

void check_size(int64_t height, int64_t width) {
  if (height < 1 || width < 1) throw UnreadableImage("it has no pixels");
  if (height <= kMaxImageSide && width <= kMaxImageSide && height * width <= kMaxImagePixels) {
    return;
  }
  throw UnreadableImage(
      fmt::format("it claims {}x{} pixels; at most {} per side and {} Mi in all are read",
                  width,
                  height,
                  kMaxImageSide,
                  kMaxImagePixels >> 20));
}

void decode_image(std::span<const std::byte> file, ChooseRegion choose, Image& image) {
  decode_image(file, [](const ImageSize&) { return 1; }, choose, image);
}

void decode_image(std::span<const std::byte> file,
                  ChooseShrink shrink,
                  ChooseRegion choose,
                  Image& image) {
  constexpr std::array<uint8_t, 3> kJpeg = {0xFF, 0xD8, 0xFF};
  constexpr std::array<uint8_t, 8> kPng = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  if (begins_with(file, kJpeg)) return decode_jpeg(file, shrink, choose, image);
  if (begins_with(file, kPng)) return decode_png(file, choose, image);
  throw UnreadableImage(file.empty() ? "the file is empty" : "it is neither JPEG nor PNG");
}

}  // namespace lockstep::data
