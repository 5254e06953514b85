// Which oneDNN the program runs with: its results, bit for bit, are that version's.
#pragma once

#include <string>

namespace lockstep::kernels {

std::string onednn_version();  // "2.6.3", "none" in a build without it
// The instruction sets that oneDNN makes code for: its processor's, less what LOCKSTEP_ISA and
// DNNL_MAX_CPU_ISA take away. "none" in a build without it.
std::string onednn_isa();
// Errors: EnvironmentError in a build without it, which convolves on CUDA alone.
void require_onednn();
// True where oneDNN computes in bf16 on this processor, at the level chosen; elsewhere in f32.
bool onednn_has_bf16();

}  // namespace lockstep::kernels
