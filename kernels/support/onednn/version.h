// The oneDNN that the program runs with. The bits of results depend on its version.
#pragma once

#include <string>

namespace lockstep::kernels {

std::string onednn_version();  // "2.6.3", "none" in a build without it
// The instruction sets for which oneDNN generates code: the processor's, as far as LOCKSTEP_ISA and
// DNNL_MAX_CPU_ISA allow. "none" in a build without it.
std::string onednn_isa();
// Errors: EnvironmentError in a build without oneDNN, which can compute convolutions only on CUDA.
void require_onednn();
// True if oneDNN computes in bf16 on this processor at the chosen level; otherwise it computes in
// f32.
bool onednn_has_bf16();

}  // namespace lockstep::kernels
