#include "core/version.h"

namespace lockstep {

std::string_view version() {
  return LOCKSTEP_VERSION;
}

}  // namespace lockstep
