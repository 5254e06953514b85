// When a step is worth a closer look, and what was seen in it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/communicator.h"
#include "core/stream.h"
#include "data/batch_plan.h"
#include "nn/module.h"
#include "trainers/debug/black_box.h"
#include "trainers/debug/numerics_report.h"

namespace lockstep::trainers {

// A run watches the step after nine skipped ones (on a device, after those that it knows of), whose
// report is then of a real step and has cost nothing before; a replay watches every step.
// Thread safety: none.
class NumericsWatch {
 public:
  enum class When : uint8_t { kTenthSkip, kEveryStep };
  struct Options {
    When when = When::kTenthSkip;
    int64_t run_ranks = 1;  // those of the run, of which a replay may have fewer
    data::BatchPlan plan;
  };
  // Stream and model must outlive this.
  NumericsWatch(const Options& options, Stream& stream, const nn::Module& model);

  // Step `step`, from 1; before it the loss scale is `scale`, and so many steps in a row were
  // skipped.
  void begin_step(int64_t step, double scale, int64_t consecutive_skips);
  // For the tapes of the step; null where it is not watched.
  TapeListener* listener() { return box_ ? &*box_ : nullptr; }
  void begin_micro_step(const Var& images);
  // When it is known what became of the steps so far, likewise. True once, when the last ten or
  // more in a row were skipped and this one was watched.
  bool end_step(double scale, int64_t consecutive_skips);

  // Reports on this step, or on an earlier one that spoiled the weights. A collective call.
  NumericsReport report(Communicator& ranks, Trouble trouble, std::string what, int64_t step) const;

 private:
  std::optional<NumericsFind> find(const BlackBox& box) const;

  const Options options_;
  Stream& stream_;
  const nn::Module& model_;
  std::optional<BlackBox> box_;
  int64_t step_ = 0;
  double scale_ = 1;       // before the step
  bool reported_ = false;  // these skips in a row
  std::vector<ScaleChange> scales_;
};

}  // namespace lockstep::trainers
