// The functions of data/codecs in a build without libjpeg and libpng.
#include "data/codecs/decode_image.h"
#include "data/codecs/encode_png.h"

namespace lockstep::data {

void require_codecs() {
  throw EnvironmentError(
      "this build reads no photos",
      "libjpeg or libpng was not found when it was configured, or LOCKSTEP_CODECS=OFF",
      "scripts/setup.sh and cmake --preset release -DLOCKSTEP_CODECS=ON, or another data set");
}

void decode_image(std::span<const std::byte>, ChooseRegion, Image&) {
  require_codecs();
}
void decode_image(std::span<const std::byte>, ChooseShrink, ChooseRegion, Image&) {
  require_codecs();
}
std::string encode_png(const ImageSize&, int64_t, std::string_view) {
  return {};
}

}  // namespace lockstep::data
