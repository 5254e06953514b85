// How photos are resized, as flags spell it.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "data/codecs/image.h"
#include "engine/settings/choice_names.h"

namespace lockstep::trainers {

// None: one of the two, drawn for each image and epoch.
using ChosenInterpolation = std::optional<data::Interpolation>;

inline constexpr std::array kInterpolationNames = {
    Named<ChosenInterpolation>(data::Interpolation::kBilinear, "bilinear"),
    Named<ChosenInterpolation>(data::Interpolation::kBicubic, "bicubic"),
    Named<ChosenInterpolation>(std::nullopt, "random")};

inline std::string_view name_of(ChosenInterpolation chosen) {
  return word_of(kInterpolationNames, chosen);
}

}  // namespace lockstep::trainers
