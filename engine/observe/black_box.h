// Finds the tensor of a step that first became infinite or NaN, and decides which steps are
// watched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/autograd.h"
#include "core/communicator.h"
#include "core/shards.h"
#include "core/stream.h"
#include "data/batch_plan.h"
#include "engine/observe/layer_names.h"
#include "engine/observe/numerics_find.h"
#include "nn/module.h"

namespace lockstep {

// Counts, on the stream's device, the elements that are not finite in the weights, in the input, in
// each op's result and in each gradient. Only begin_step() and first() wait for the counts.
// Thread safety: none.
class BlackBox : public TapeListener {
 public:
  // Both must outlive this.
  BlackBox(Stream& stream, const nn::Module& model);

  // Checks the weights. When these are not finite, an earlier find is kept, because they are its
  // consequence.
  void begin_step(int64_t step);
  // `images`: the root of the micro-step's tape.
  void begin_micro_step(const Var& images);
  void on_result(const TapeOp& op, const Tensor& result) override;
  void on_gradient(const TapeOp& op, size_t i, Tensor& gradient) override;

  // The first find on this rank. NumericsFind::images are rows in the micro-step's batch.
  std::optional<NumericsFind> first() const;

 private:
  // Says what a row of a tensor belongs to.
  enum class Rows : uint8_t { kNothing, kImages, kShards };
  struct Event {
    NumericsFind what;  // all but counts and places
    Rows rows = Rows::kNothing;
    Tensor counts;  // of elements that are not finite, a row
  };
  // The place of an op in the network.
  struct Place {
    std::string layer;
    std::string after;
  };

  void watch(NumericsFind what, Rows rows, const Tensor& tensor);
  NumericsFind find_of(const Event& event, const Tensor& counts) const;

  Stream& stream_;
  const std::vector<nn::NamedParameter> parameters_;
  const LayerNames names_;
  int64_t step_ = 0;
  std::vector<Shards> shards_;  // of each micro-step
  std::vector<Event> events_;   // of the step
  std::unordered_map<uint64_t, Place> places_;
  std::string last_layer_;
  std::optional<NumericsFind> kept_;
};

// Decides which steps a black box watches, and reports what it saw. A run watches the step after
// nine skipped ones (on a device, after those that it knows of), so that the report is of a real
// step and costs nothing before. A replay watches every step. Thread safety: none.
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

  // Begins step `step`, from 1. Before it, the loss scale is `scale`, and this many steps in a row
  // were skipped.
  void begin_step(int64_t step, double scale, int64_t consecutive_skips);
  // The listener for the tapes of the step; null where the step is not watched.
  TapeListener* listener() { return box_ ? &*box_ : nullptr; }
  void begin_micro_step(const Var& images);
  // Call it when the outcome of the steps so far is known, with begin_step()'s arguments. Returns
  // true once: when the last ten or more in a row were skipped and this step was watched.
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

}  // namespace lockstep
