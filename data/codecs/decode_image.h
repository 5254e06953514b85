// Decodes the bytes of a JPEG or PNG file to pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/function_ref.h"
#include "data/codecs/image.h"
#include "data/codecs/unreadable_image.h"

namespace lockstep::data {

// Larger images are rejected before memory is allocated for them.
inline constexpr int64_t kMaxImageSide = 65535;
inline constexpr int64_t kMaxImagePixels = int64_t{64} << 20;
inline constexpr int64_t kMaxPhotoBytes = 8 * kMaxImagePixels;  // file size: 16-bit RGBA
inline constexpr int kMaxJpegScans = 500;
inline constexpr int64_t kMaxJpegScannedPixels = 16 * kMaxImagePixels;  // over all scans

// Chooses the region to decode, when the image's size is known. Requires: the region is not empty
// and within the image.
using ChooseRegion = FunctionRef<Region(const ImageSize& size)>;
// Chooses the factor by which a JPEG is shrunk while it is decoded: 1, 2, 4 or 8. It is called
// before ChooseRegion, whose region is then in the shrunk image.
using ChooseShrink = FunctionRef<int(const ImageSize& size)>;

// Decodes the region that `choose` returns into `image`, whose memory is reused. The file's first
// bytes tell its format. Gray, palette, CMYK, 16 bits and alpha become RGB as Pillow's
// convert("RGB") does. The EXIF orientation is ignored, as by torchvision's loader.
// Thread safety: reentrant. Errors: UnreadableImage.
void decode_image(std::span<const std::byte> file, ChooseRegion choose, Image& image);
void decode_image(std::span<const std::byte> file,
                  ChooseShrink shrink,
                  ChooseRegion choose,
                  Image& image);

// Errors: EnvironmentError in a build without libjpeg and libpng, where both functions above throw
// it, too.
void require_codecs();

// Errors: UnreadableImage for sizes beyond the limits, or empty ones.
void check_size(int64_t height, int64_t width);

// The decoders that decode_image() calls. Requires: the file begins with the format's first bytes.
void decode_jpeg(std::span<const std::byte> file,
                 ChooseShrink shrink,
                 ChooseRegion choose,
                 Image& image);
void decode_png(std::span<const std::byte> file, ChooseRegion choose, Image& image);

}  // namespace lockstep::data
