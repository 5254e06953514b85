// Predicts the needs and the speed of a training on a GPU, from what a step holds, moves and
// computes. All speeds are predictions, from rooflines and the share of them that other engines
// reached.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/plan/convolution_plans.h"
#include "inspect/plan/gpu_card.h"
#include "trainers/planner/dry_step.h"
#include "trainers/planner/memory_plan.h"

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
  double traffic_s = 0;  // if all of it were one copy
  double compute_s = 0;  // if all of it were one matrix product
  double limit_s = 0;    // each op at the slower of both
  double predicted_s = 0;
};
SchemePrediction predict(const DryStep& step,
                         Scheme scheme,
                         const GpuCard& card,
                         const PrecisionConfig& precision,
                         const PredictionConstants& constants = {});

// Predicts one all-reduce of `bytes` over `ranks` by tree slices on NVLink: two rounds of messages,
// and 2 (n-1)/n of the bytes through each link.
double all_reduce_s(int64_t bytes,
                    int64_t ranks,
                    const GpuCard& card,
                    const PredictionConstants& constants = {});

struct OpTotals {
  int64_t calls = 0, flops = 0, bytes = 0;
};

struct ScalingPrediction {
  double all_reduce_s = 0;  // of all gradients
  double images_per_s = 0;  // over all ranks, where backward() hides all buckets but the last
  double efficiency = 0;    // then; 1: as fast as ranks without an exchange
  double unhidden = 0;      // efficiency where backward() hides nothing
};

struct TrainingPlan {
  // CUDA's context, and cuDNN's and NCCL's memory.
  static constexpr int64_t kLibraries = int64_t{1} << 30;

  GpuCard card;
  PrecisionConfig precision;
  int64_t ranks = 1;
  int64_t micro_steps = 1;  // of an optimizer step
  DryStep step = {};        // of one rank and one micro-step
  DryStep other_step = {};  // of twice as many images: what grows with the batch
  std::vector<PlannedConvolution> convolutions = {};
  std::string no_engines = {};  // why none were chosen; empty: they were
  PredictionConstants constants = {};

  int64_t workspace_bytes() const;  // of the largest convolution
  MemoryPlan memory() const;
  int64_t needed_bytes() const;  // memory(), and kLibraries
  bool fits() const { return needed_bytes() <= card.memory_bytes; }
  int64_t largest_batch() const;  // that fits; 0 for none
  std::map<std::string_view, OpTotals> totals_by_op() const;
  double peak_flops() const { return precision.is_mixed() ? card.half_flops : card.f32_flops; }
  // Predicts the training on `count` ranks, by Scheme::kFusedBatchNorm and buckets of 25 MiB.
  ScalingPrediction scaled_to(int64_t count) const;
};

}  // namespace lockstep::trainers
