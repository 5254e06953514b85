// Tells people and programs where the first infinity or NaN of a run appeared.
#pragma once

#include <string>
#include <vector>

#include "engine/observe/numerics_find.h"

namespace lockstep::trainers {

// "layer1.0.conv1 (conv2d), backward: the gradient of its input".
std::string describe(const NumericsFind& find);
std::string to_json(const NumericsFind& find);  // one object

// The report as lines for people; long lists are cut.
std::vector<std::string> lines(const NumericsReport& report);
// numerics.json: indented, ends in a newline.
std::string to_json(const NumericsReport& report);

}  // namespace lockstep::trainers
