// Decodes the bytes of a JPEG or PNG file to pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/error.h"
#include "core/function_ref.h"
#include "data/codecs/image.h"

namespace lockstep::data {

// A file whose image cannot be had: damaged, of another kind, or beyond the limits.
class UnreadableImage : public DataError {
 public:
  // `why` says what is wrong with the file, without its name.
  explicit UnreadableImage(const std::string& why)
      : DataError("an image cannot be read", why, "remove the file or repair it") {}
};

// Larger ones are refused before memory is taken for them.
inline constexpr int64_t kMaxImageSide = 65535;
inline constexpr int64_t kMaxImagePixels = int64_t{64} << 20;
inline constexpr int64_t kMaxPhotoBytes = 8 * kMaxImagePixels;  // of a file: RGBA of 16 bits
inline constexpr int kMaxJpegScans = 500;
inline constexpr int64_t kMaxJpegScannedPixels = 16 * kMaxImagePixels;  // over all scans

// Says, when an image's size is known, which part of it is wanted. Requires: within the image, not
// empty.
using ChooseRegion = FunctionRef<Region(const ImageSize& size)>;
// Chooses by how much a JPEG is shrunk while it is decoded: 1, 2, 4 or 8. It is called first; the
// region is then one of the shrunk image.
using ChooseShrink = FunctionRef<int(const ImageSize& size)>;

// Decodes the region that `choose` wants into `image`, whose memory is used again. The kind is told
// by the file's first bytes. Gray, palette, CMYK, 16 bits and alpha become RGB as Pillow's
// convert("RGB") does; EXIF's orientation is not applied, as torchvision's loader does not.
// Thread safety: reentrant. Errors: UnreadableImage.
void decode_image(std::span<const std::byte> file, ChooseRegion choose, Image& image);
void decode_image(std::span<const std::byte> file,
                  ChooseShrink shrink,
                  ChooseRegion choose,
                  Image& image);

// Errors: EnvironmentError in a build without libjpeg and libpng, as both above then throw.
void require_codecs();

// Errors: UnreadableImage for sizes beyond the limits, or empty ones.
void check_size(int64_t height, int64_t width);

// The decoders that decode_image() calls. Requires: the first bytes of such a file.
void decode_jpeg(std::span<const std::byte> file,
                 ChooseShrink shrink,
                 ChooseRegion choose,
                 Image& image);
void decode_png(std::span<const std::byte> file, ChooseRegion choose, Image& image);

}  // namespace lockstep::data
