// A model's names and shapes as text, for a digest.
#pragma once

#include <string>

#include "nn/module.h"

namespace lockstep::testing {

// One line "name<TAB>dim,dim,..." per entry, in state_dict() order.
inline std::string state_lines(const nn::Module& model) {
  std::string lines;
  for (const nn::StateEntry& entry : model.state()) {
    lines += entry.name + "\t";
    for (int axis = 0; axis < entry.file_shape.rank(); ++axis) {
      lines += (axis == 0 ? "" : ",") + std::to_string(entry.file_shape[axis]);
    }
    lines += "\n";
  }
  return lines;
}

}  // namespace lockstep::testing
