// Words the remedies of the library's errors as flags of each program.
#pragma once

#include <string_view>

#include "core/error.h"

namespace lockstep::trainers {

// For set_remedy_text(). Empty where the program has no flag for it.
std::string_view trainer_advice(Remedy remedy);  // train_convnet, train_resnet
std::string_view tool_advice(Remedy remedy);     // lockstep; a replay takes its run's flags

}  // namespace lockstep::trainers
