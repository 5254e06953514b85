// Runs a training step on the dry device to learn what it would compute, move and hold, for
// lockstep plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/stream.h"
#include "engine/settings/optimizer_options.h"
#include "engine/settings/precision_config.h"
#include "engine/settings/test_views.h"
#include "trainers/model/models.h"

namespace lockstep::trainers {

struct StepMemory {        // bytes
  int64_t parameters = 0;  // and buffers, f32
  int64_t copies = 0;      // of parameters in 16 bits
  int64_t optimizer = 0;
  int64_t average = 0;      // of parameters and buffers: --ema
  int64_t gradients = 0;    // of parameters, f32
  int64_t activations = 0;  // that wait for backward()
  int64_t made = 0;         // peak of these and short-lived tensors
  int64_t placed = 0;       // pool for these: tensors leave holes that no other fits
  int64_t batches = 0;      // images and labels: two batches on their way, and a graph's own
  int64_t evaluation = 0;   // a pool for what an evaluation makes, between two steps

  // The pool for the tensors of steps and evaluations.
  int64_t pool() const { return whole_pieces(std::max(placed, evaluation)); }
  int64_t needed() const { return fixed() + batches + pool(); }
  // The unit of large blocks on a GPU.
  static constexpr int64_t kPiece = int64_t{2} << 20;
  // Returns the bytes of the largest block that this many bytes hold.
  static int64_t in_pieces(int64_t bytes) {
    return bytes < kPiece ? bytes : bytes / kPiece * kPiece;
  }
  // Returns the bytes of a GPU that a block of this many bytes takes.
  static int64_t whole_pieces(int64_t bytes) {
    return in_pieces(bytes) < bytes ? in_pieces(bytes) + kPiece : bytes;
  }
  // The copy on the host that is saved in the background (engine/state/snapshot.h).
  int64_t saved() const { return parameters + optimizer + average; }
  // Bytes that do not grow with the batch.
  int64_t fixed() const { return parameters + copies + optimizer + average + gradients; }
};

struct LayerCost {
  std::string name;  // "layer1.0.conv1", or the op where it has no parameters: "max_pool2d"
  int64_t flops = 0, bytes = 0;  // in both directions
};

struct DryStep {
  int64_t images = 0;
  int64_t parameters = 0;  // elements
  StepMemory memory = {};
  std::vector<LedgerEntry> ledger = {};
  int64_t update_begins = 0;           // the optimizer's first entry there
  std::vector<LayerCost> layers = {};  // in the order of the forward pass
};

// Optional work of a step.
struct StepExtras {
  bool mixup = false;   // or cutmix
  bool erases = false;  // boxes travel to the device too
  OptimizerOptions optimizer = {.lr = 0.1, .momentum = 0.9};
  int64_t shards = 1;
  int64_t micro_steps = 1;  // of an optimizer step, whose gradients are summed; one of them is run
  bool graph = true;        // the step reads images at addresses of its own
  int64_t evaluated = 0;    // images of an evaluation's batch; 0: there is none
  std::optional<data::ImageShape> test_image = {};  // shape of these; absent: as in the step
  TestViews views = TestViews::kOne;                // of each of them
};

// Runs one step on `images`. Errors: UsageError as make_model.
DryStep run_dry_step(const ModelOptions& network,
                     int64_t images,
                     const PrecisionConfig& precision,
                     const StepExtras& extras = {});

}  // namespace lockstep::trainers
