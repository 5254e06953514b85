#include "kernels/conv/winograd.h"

#include "kernels/support/isa.h"
#include "kernels/support/onednn/version.h"

namespace lockstep::kernels {

bool suits_winograd(const Stream& stream,
                    Dtype dtype,
                    const Shape& in,
                    const Shape& weight,
                    const Conv2dParams& params) {
  if (stream.device() != Device::kCpu || dtype != Dtype::kBF16) return false;

  const bool unit = weight[2] == 3 && weight[3] == 3 && params.stride_h == 1 &&
                    params.stride_w == 1 && params.pad_h == 1 && params.pad_w == 1;
  const auto wide = [](int64_t channels) { return channels >= 32 && channels % 16 == 0; };
  if (!unit || params.groups != 1 || !wide(weight[0]) || !wide(weight[1])) {
    return false;
  }
  // Tiles reach over the edges of odd images: of 3x3 pixels they are 16 of 9.
  const int64_t tiles = (in[2] + 1) / 2 * ((in[3] + 1) / 2);
  constexpr int64_t kProducts = 16, kDirectProducts = 9;
  const bool saves = 10 * tiles * kProducts < 7 * in[2] * in[3] * kDirectProducts;
  return saves && is_built(IsaLevel::kV4) && isa_level() == IsaLevel::kV4 && onednn_has_bf16();
}

}  // namespace lockstep::kernels
