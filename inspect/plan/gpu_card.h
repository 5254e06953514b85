// The properties of a GPU that lockstep plan needs.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::trainers {

// Figures of the data sheets: dense matrix products, bytes per second, one direction of NVLink.
struct GpuCard {
  std::string name;  // "H200"
  int multiprocessors = 0;
  int compute_capability = 0;  // 90: sm_90
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t shared_bytes_per_block = 0;
  double dram_bytes_per_s = 0;
  double half_flops = 0;  // f16 and bf16
  double f32_flops = 0;   // no TF32
  double link_bytes_per_s = 0;
  std::string cudnn_properties = {};  // as kernels/support/cudnn/target.h takes them
};

// `gpu` is a100, h100, h200, b200, or a file that bench/gpu_suite.sh saved on a card. Errors:
// UsageError for another name, and for a file of a card that is not known here; EnvironmentError
// for a file that cannot be read.
GpuCard find_gpu(const std::string& gpu);

// The name by which a run on the card calls it: "NVIDIA H200 (sm_90)".
std::string device_text(const GpuCard& card);

}  // namespace lockstep::trainers
