// libjpeg reports errors by calling a function that must not return: jump_out() calls longjmp.
// Therefore no object with a destructor may be constructed between setjmp and calls of the library.
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include "data/codecs/decode_image.h"

namespace lockstep::data {
namespace {

constexpr int64_t kMargin = 2;  // pixels around a region that chroma upsampling reads

struct ErrorManager : jpeg_error_mgr {
  std::jmp_buf target;
  std::array<char, JMSG_LENGTH_MAX> message;
};

[[noreturn]] void jump_out(j_common_ptr codec) {
  auto* manager = static_cast<ErrorManager*>(codec->err);
  manager->format_message(codec, manager->message.data());
  std::longjmp(manager->target, 1);
}

void ignore_message(j_common_ptr, int) {}

[[noreturn]] void refuse(j_common_ptr codec, const char* why) {
  auto* manager = static_cast<ErrorManager*>(codec->err);
  std::snprintf(manager->message.data(), manager->message.size(), "%s", why);
  std::longjmp(manager->target, 1);
}

// By default the library fills the rest of a truncated image with gray.
boolean no_more_input(j_decompress_ptr codec) {
  refuse(reinterpret_cast<j_common_ptr>(codec), "the file ends before the image does");
}

// Each scan of a progressive file costs a pass over the image, even if it takes only a few bytes of
// the file.
void count_scans(j_common_ptr codec) {
  const auto* info = reinterpret_cast<j_decompress_ptr>(codec);
  const int64_t scans = info->input_scan_number;
  const int64_t pixels = int64_t{info->image_height} * info->image_width;
  if (scans > kMaxJpegScans || scans * pixels > kMaxJpegScannedPixels) {
    refuse(codec, "it has too many progressive scans");
  }
}

// Converts CMYK values that are stored inverted, as 255 - x, which scales each color by black.
// Adobe's CMYK files are inverted, and like Pillow we assume that every file is.
void inverted_cmyk_to_rgb(const uint8_t* from, int64_t pixels, uint8_t* to) {
  for (int64_t i = 0; i < pixels; ++i) {
    for (int channel = 0; channel < 3; ++channel) {
      const unsigned product = from[4 * i + channel] * from[4 * i + 3] + 128U;
      to[3 * i + channel] = static_cast<uint8_t>(((product >> 8) + product) >> 8);
    }
  }
}

// Owns a libjpeg decompressor.
class JpegCodec {
 public:
  JpegCodec() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = jump_out;
    errors_.emit_message = ignore_message;
  }
  JpegCodec(const JpegCodec&) = delete;
  JpegCodec& operator=(const JpegCodec&) = delete;
  ~JpegCodec() {
    if (created_) jpeg_destroy_decompress(&info_);
  }

  void read_header(std::span<const std::byte> file) {
    if (setjmp(errors_.target) != 0) throw_message();
    created_ = true;
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_,
                 reinterpret_cast<const unsigned char*>(file.data()),
                 static_cast<unsigned long>(file.size()));
    info_.src->fill_input_buffer = no_more_input;
    constexpr std::array kEnd = {std::byte{0xFF}, std::byte{JPEG_EOI}};
    has_end_marker_ = std::ranges::equal(file.last(std::min(file.size(), kEnd.size())), kEnd);
    progress_.progress_monitor = count_scans;
    info_.progress = &progress_;
    jpeg_read_header(&info_, TRUE);
    const bool is_cmyk = info_.num_components == 4;
    info_.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
  }

  ImageSize size() const {
    return {static_cast<int64_t>(info_.image_height), static_cast<int64_t>(info_.image_width)};
  }

  // Returns the size of the shrunk image.
  ImageSize shrink_by(int denominator) {
    if (setjmp(errors_.target) != 0) throw_message();
    info_.scale_num = 1;
    info_.scale_denom = static_cast<unsigned>(denominator);
    jpeg_calc_output_dimensions(&info_);
    return {static_cast<int64_t>(info_.output_height), static_cast<int64_t>(info_.output_width)};
  }

  // Requires: `line` and `image` have their size already, since no object with a destructor may be
  // made here.
  void read(Image& image, std::vector<uint8_t>& line) {
    if (setjmp(errors_.target) != 0) throw_message();
    jpeg_start_decompress(&info_);
    const Region& region = image.region;
    const int64_t before = std::max<int64_t>(region.left - kMargin, 0);
    const int64_t after =
        std::min<int64_t>(region.left + region.width + kMargin, info_.output_width);
    JDIMENSION left = 0;
    if (may_crop_columns()) {
      left = static_cast<JDIMENSION>(before);
      auto width = static_cast<JDIMENSION>(after - before);
      jpeg_crop_scanline(&info_, &left, &width);
    }
    const int64_t first = std::max<int64_t>(region.top - kMargin, 0);
    if (first > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(first));
    const bool is_cmyk = info_.output_components == 4;
    const uint8_t* const wanted = line.data() + (region.left - left) * info_.output_components;
    uint8_t* row = line.data();
    while (info_.output_scanline < region.top + region.height) {
      const int64_t y = info_.output_scanline;
      jpeg_read_scanlines(&info_, &row, 1);
      if (y < region.top) continue;
      if (is_cmyk) {
        inverted_cmyk_to_rgb(wanted, region.width, image.row(y));
      } else {
        std::copy_n(wanted, region.width * 3, image.row(y));
      }
    }
    // Whether a file is refused because it ends early must not depend on the region. A file with
    // the end marker at its end never is. Skipping to the end of an image decodes nothing, so the
    // last row is read.
    if (has_end_marker_) return;
    const JDIMENSION left_over = info_.output_height - info_.output_scanline;
    if (left_over > 1) jpeg_skip_scanlines(&info_, left_over - 1);
    if (left_over > 0) jpeg_read_scanlines(&info_, &row, 1);
  }

 private:
  // Whether cropped columns are those of the whole image. libjpeg smooths blocks of progressive
  // files whose scans are not all there by their neighbors, which a crop lacks. It crops wrongly
  // where a shrunk image has chroma at a fourth of the size.
  bool may_crop_columns() const {
    const bool has_usual_chroma = info_.max_h_samp_factor <= 2 && info_.max_v_samp_factor <= 2;
    return info_.progressive_mode == FALSE && (info_.scale_denom == 1 || has_usual_chroma);
  }

  [[noreturn]] void throw_message() const { throw UnreadableImage(errors_.message.data()); }

  jpeg_decompress_struct info_{};
  ErrorManager errors_{};
  jpeg_progress_mgr progress_{};
  bool created_ = false;
  bool has_end_marker_ = false;
};

}  // namespace

void decode_jpeg(std::span<const std::byte> file,
                 ChooseShrink shrink,
                 ChooseRegion choose,
                 Image& image) {
  thread_local std::vector<uint8_t> line;
  JpegCodec codec;
  codec.read_header(file);
  check_size(codec.size().height, codec.size().width);
  const ImageSize size = codec.shrink_by(shrink(codec.size()));
  image.region = choose(size);
  image.pixels.resize(static_cast<size_t>(image.region.height * image.region.width * 3));
  line.resize(static_cast<size_t>(size.width) * 4);
  codec.read(image, line);
}

}  // namespace lockstep::data
