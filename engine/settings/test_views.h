// The views of each image that an evaluation uses.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/settings/choice_names.h"

namespace lockstep {

enum class TestViews : uint8_t {
  kOne,   // as it is
  kFlip,  // and mirrored, left to right
  kShift  // these two, with half of the weight, and those of the image moved by a pixel, down and
          // right, and up and left; the image is mirrored at its edge. Source: airbench94's level 2
};

// As --tta spells them.
inline constexpr std::array kTestViewNames = {Named<TestViews>(TestViews::kOne, "none"),
                                              Named<TestViews>(TestViews::kFlip, "flip"),
                                              Named<TestViews>(TestViews::kShift, "shift")};

inline std::string_view name_of(TestViews views) {
  return word_of(kTestViewNames, views);
}

}  // namespace lockstep
