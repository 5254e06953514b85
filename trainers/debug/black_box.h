// Which tensor of a step became infinite or NaN first.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/shards.h"
#include "core/stream.h"
#include "core/tape_listener.h"
#include "nn/module.h"
#include "trainers/debug/numerics_report.h"
#include "trainers/model/layer_names.h"

namespace lockstep::trainers {

// Counts on the stream's device what is not finite in the weights, in the input, in each op's
// result and in each gradient; nothing waits for the counts but begin_step() and first().
// Thread safety: none.
class BlackBox : public TapeListener {
 public:
  // Both must outlive this.
  BlackBox(Stream& stream, const nn::Module& model);

  // Looks at the weights. What was found before is kept when these are not finite: they are its
  // consequence.
  void begin_step(int64_t step);
  // `images`: the root of the micro-step's tape.
  void begin_micro_step(const Var& images);
  void on_result(const TapeOp& op, const Tensor& result) override;
  void on_gradient(const TapeOp& op, size_t i, Tensor& gradient) override;

  // On this rank. NumericsFind::images are rows of the micro-step's batch.
  std::optional<NumericsFind> first() const;

 private:
  // Says what a tensor has a row for each of.
  enum class Rows : uint8_t { kNothing, kImages, kShards };
  struct Event {
    NumericsFind what;  // all but counts and places
    Rows rows = Rows::kNothing;
    Tensor counts;  // of elements that are not finite, a row
  };
  // Where an op stands in the network.
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

}  // namespace lockstep::trainers
