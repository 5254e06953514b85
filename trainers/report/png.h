// PNG files.
#pragma once

#include <string>

#include "trainers/report/event_values.h"

namespace lockstep::trainers {

// A PNG of 8 bits per channel, gray or color. Requires: 1 or 3 channels, as many pixels as the
// sides say.
std::string png_of(const Picture& picture);

}  // namespace lockstep::trainers
