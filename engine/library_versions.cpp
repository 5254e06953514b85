#include "engine/library_versions.h"

#include "core/version.h"
#include "kernels/support/isa.h"
#include "kernels/support/onednn/version.h"

namespace lockstep {

LibraryVersions library_versions() {
  return {{"lockstep", std::string(version())},
          {"isa", std::string(name_of(kernels::isa_level()))},
          {"onednn", kernels::onednn_version()},
          {"onednn_isa", kernels::onednn_isa()}};
}

}  // namespace lockstep
