// Which oneDNN the program runs with: its results, bit for bit, are that version's.
#pragma once

#include <string>

namespace lockstep::kernels {

std::string onednn_version();  // "2.6.3"

}  // namespace lockstep::kernels
