// Copies rows of channels to rows of another type or width, for libraries that require them.
#pragma once

#include "core/stream.h"

namespace lockstep::kernels::cuda {

// `count` rows on the device, of any float type.
struct RowConversion {
  int64_t count = 0;
  Dtype from_type = Dtype::kF32, to_type = Dtype::kF32;
  int64_t from_channels = 0, to_channels = 0;
};

// Values are rounded to to_type. Channels that `from` lacks become +0; channels that `to` lacks are
// dropped.
void convert_rows(Stream& stream,
                  const RowConversion& conversion,
                  const std::byte* from,
                  std::byte* to);

}  // namespace lockstep::kernels::cuda
