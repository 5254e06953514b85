// How fast a step could be and probably is, from what it moves and computes. Everything is a
// prediction: rooflines, and what others' engines reached of them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "trainers/planner/dry_step.h"
#include "trainers/planner/gpu_card.h"

namespace lockstep::trainers {

// Constants of the prediction, the same for all cards. Sources: copy and matrix products measured
// on an H200 with torch 2.11 and random data (4.3 of 4.8 TB/s, 790 of 989 TFLOP/s); reached:
// ResNet-50 in published runs, 0.47 to 0.63 of the traffic's limit; launches: 0.9 us (Julia's CUDA
// documentation); links: NCCL's bus bandwidth of 235 GB/s on 300 and 370 on 450.
struct PredictionConstants {
  double dram = 0.90;        // of the data sheet's bandwidth
  double products = 0.80;    // of the data sheet's matrix products
  double reached = 0.55;     // of an op-by-op roofline
  double launch_s = 1e-6;    // of one op in a CUDA graph
  double link = 0.80;        // of NVLink's bandwidth
  double latency_s = 19e-6;  // of one round of messages
};

enum class Scheme : uint8_t { kUnfused, kFusedBatchNorm, kStatsInConvolutions };
inline constexpr std::array kSchemes = {
    Scheme::kUnfused, Scheme::kFusedBatchNorm, Scheme::kStatsInConvolutions};
std::string_view name_of(Scheme scheme);

struct SchemePrediction {
  double bytes = 0;      // of a step
  double traffic_s = 0;  // were all of it one copy
  double compute_s = 0;  // were all of it one matrix product
  double limit_s = 0;    // each op at the slower of both
  double predicted_s = 0;
};
SchemePrediction predict(const DryStep& step,
                         Scheme scheme,
                         const GpuCard& card,
                         const PrecisionConfig& precision,
                         const PredictionConstants& constants = {});

// One all-reduce of `bytes` over `ranks` by tree slices on NVLink: two rounds of messages, and
// 2 (n-1)/n of the bytes through each link.
double all_reduce_s(int64_t bytes,
                    int64_t ranks,
                    const GpuCard& card,
                    const PredictionConstants& constants = {});

}  // namespace lockstep::trainers
