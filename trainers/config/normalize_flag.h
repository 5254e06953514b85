// Reads and writes values of --normalize.
#pragma once

#include <optional>
#include <string>

#include "kernels/normalize_image.h"

namespace lockstep::trainers {

// "none"; means, then deviations: "0.1307,0.3081", "0.485,0.456,0.406,0.229,0.224,0.225". Read back
// it gives the same floats.
std::string normalize_text(const kernels::NormalizeImageParams& params);

// Nothing for "dataset": the constants then follow the data. Errors: UsageError for what is neither
// that, nor "none", nor 2 or 6 finite numbers with deviations above 0.
std::optional<kernels::NormalizeImageParams> parse_normalize(const std::string& text);

}  // namespace lockstep::trainers
