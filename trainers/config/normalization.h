// Normalization of images: the values of --normalize, and the constants of a data set.
#pragma once

#include <optional>
#include <string>

#include "data/dataset.h"
#include "kernels/image/normalize_image.h"

namespace lockstep::trainers {

// Formats the constants: "none", or means, then deviations, as in "0.1307,0.3081" and
// "0.485,0.456,0.406,0.229,0.224,0.225". Parsing the text gives the same floats.
std::string normalize_text(const kernels::NormalizeImageParams& params);

// Returns nothing for "dataset": the constants then depend on the data. Errors: UsageError for text
// that is neither "dataset" nor "none" nor 2 or 6 finite numbers with deviations above 0.
std::optional<kernels::NormalizeImageParams> parse_normalize(const std::string& text);

// Returns the constants that --normalize asks for: `asked`, which is absent for "dataset". Then
// they are those published for the data set; measured over the training images for shapes;
// ImageNet's for CIFAR-10, photos and synthetic color images; and none (only division by 255) for a
// data set of unknown statistics.
// Errors: UsageError for three means and images of another number of channels.
kernels::NormalizeImageParams normalization(
    const std::optional<kernels::NormalizeImageParams>& asked, const data::Dataset& dataset);

}  // namespace lockstep::trainers
