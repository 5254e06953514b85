// Normalization of images: the values of --normalize, and the constants of a data set.
#pragma once

#include <optional>
#include <string>

#include "data/dataset.h"
#include "kernels/image/normalize_image.h"

namespace lockstep::trainers {

// "none"; means, then deviations: "0.1307,0.3081", "0.485,0.456,0.406,0.229,0.224,0.225". Read back
// it gives the same floats.
std::string normalize_text(const kernels::NormalizeImageParams& params);

// Nothing for "dataset": the constants then follow the data. Errors: UsageError for what is neither
// that, nor "none", nor 2 or 6 finite numbers with deviations above 0.
std::optional<kernels::NormalizeImageParams> parse_normalize(const std::string& text);

// Gives the constants that --normalize asks for: `asked`. For "dataset", which is nothing: as
// published for the data set,
// measured over its training images for shapes, ImageNet's for CIFAR-10, photos and synthetic color
// images; none (only division by 255) for a set of unknown statistics.
// Errors: UsageError for three means and images of another number of channels.
kernels::NormalizeImageParams normalization(
    const std::optional<kernels::NormalizeImageParams>& asked, const data::Dataset& dataset);

}  // namespace lockstep::trainers
