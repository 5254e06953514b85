// Reads PNG files by libpng, with our own limits, and writes them. Errors of reading leave through
// longjmp, as in jpeg.cpp.
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <png.h>

#include "core/check.h"
#include "data/codecs/decode_image.h"
#include "data/codecs/encode_png.h"

namespace lockstep::data {
namespace {

using Message = std::array<char, 200>;

struct Source {
  std::span<const std::byte> file;
  size_t position = 0;
};

[[noreturn]] void jump_out(png_structp png, png_const_charp why) {
  auto* message = static_cast<Message*>(png_get_error_ptr(png));
  std::snprintf(message->data(), message->size(), "%s", why);
  png_longjmp(png, 1);
}

void ignore_message(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->file.size() - source->position) {
    jump_out(png, "the file ends before the image does");
  }
  std::memcpy(to, source->file.data() + source->position, count);
  source->position += count;
}

// Owns a libpng reader.
class PngCodec {
 public:
  explicit PngCodec(std::span<const std::byte> file)
      : source_{.file = file},
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, &message_, jump_out, ignore_message)),
        info_(png_create_info_struct(png_)) {
    if (info_ == nullptr) throw UnreadableImage("libpng has no memory");
  }
  PngCodec(const PngCodec&) = delete;
  PngCodec& operator=(const PngCodec&) = delete;
  ~PngCodec() { png_destroy_read_struct(&png_, &info_, nullptr); }

  void read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) throw_message();
    png_set_user_limits(png_, kMaxImageSide, kMaxImageSide);
    png_set_crc_action(png_, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);  // Pillow reads on, too
    png_set_read_fn(png_, &source_, read_bytes);
    png_read_info(png_, info_);
    to_rgb();
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
  }

  ImageSize size() const {
    return {static_cast<int64_t>(png_get_image_height(png_, info_)),
            static_cast<int64_t>(png_get_image_width(png_, info_))};
  }
  size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  bool deep_gray() const { return deep_gray_; }  // one big-endian 16-bit value per pixel, not RGB

  void read(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) throw_message();
    png_read_image(png_, rows);
  }

 private:
  void to_rgb() {
    const int type = png_get_color_type(png_, info_);
    deep_gray_ = type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png_, info_) == 16;
    if (deep_gray_) return;
    const bool gray = (type & PNG_COLOR_MASK_COLOR) == 0;
    png_set_expand(png_);  // palettes, and bits of gray to bytes
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    if (gray) png_set_gray_to_rgb(png_);
  }
  [[noreturn]] void throw_message() const { throw UnreadableImage(message_.data()); }

  Source source_;
  Message message_{};
  png_structp png_;
  png_infop info_;
  bool deep_gray_ = false;
};

// Clips 16-bit gray values to 255, as Pillow does; other programs take the high byte.
void clipped_to_rgb(const uint8_t* from, int64_t pixels, uint8_t* to) {
  for (int64_t x = 0; x < pixels; ++x) {
    std::fill_n(to + 3 * x, 3, from[2 * x] == 0 ? from[2 * x + 1] : uint8_t{255});
  }
}

}  // namespace

void decode_png(std::span<const std::byte> file, ChooseRegion choose, Image& image) {
  PngCodec codec(file);
  codec.read_header();
  const ImageSize size = codec.size();
  check_size(size.height, size.width);
  const Region region = choose(size);
  const size_t pitch = codec.row_bytes();
  thread_local std::vector<uint8_t> all;
  all.resize(pitch * static_cast<size_t>(size.height));
  std::vector<png_bytep> rows(static_cast<size_t>(size.height));
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = all.data() + y * pitch;
  codec.read(rows.data());
  image.region = region;
  image.pixels.resize(static_cast<size_t>(region.height * region.width * 3));
  for (int64_t y = region.top; y < region.top + region.height; ++y) {
    const uint8_t* const row = rows[static_cast<size_t>(y)];
    if (codec.deep_gray()) {
      clipped_to_rgb(row + region.left * 2, region.width, image.row(y));
    } else {
      std::copy_n(row + region.left * 3, region.width * 3, image.row(y));
    }
  }
}

std::string encode_png(const ImageSize& size, int64_t channels, std::string_view pixels) {
  LS_CHECK(
      (channels == 1 || channels == 3) && std::ssize(pixels) == size.height * size.width * channels,
      "[png] got {} bytes for {} x {} pixels of {} channels",
      pixels.size(),
      size.height,
      size.width,
      channels);
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(size.width);
  png.height = static_cast<png_uint_32>(size.height);
  png.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png.flags = PNG_IMAGE_FLAG_FAST;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string file(bytes, '\0');
  const int done =
      png_image_write_to_memory(&png, file.data(), &bytes, 0, pixels.data(), 0, nullptr);
  LS_CHECK(done != 0, "[png] libpng: {}", png.message);
  file.resize(bytes);
  return file;
}

}  // namespace lockstep::data
