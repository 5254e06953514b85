#include "trainers/output/versions.h"

#include "core/version.h"
#include "kernels/isa.h"
#include "kernels/onednn_version.h"

namespace lockstep::trainers {

std::map<std::string, std::string> versions() {
  return {{"lockstep", std::string(version())},
          {"isa", std::string(name_of(kernels::isa_level()))},
          {"onednn", kernels::onednn_version()}};
}

}  // namespace lockstep::trainers
