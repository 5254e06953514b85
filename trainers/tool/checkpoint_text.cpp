#include "trainers/tool/checkpoint_text.h"

#include <fmt/core.h>

namespace lockstep::trainers {

std::string index_text(const Shape& shape, int64_t element) {
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = fmt::format("{}{}{}", element % shape[axis], text.empty() ? "" : ",", text);
    element /= shape[axis];
  }
  return "[" + text + "]";
}

}  // namespace lockstep::trainers
