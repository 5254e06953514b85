// Faults that strike on request, to test how a training handles them.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "comm/gradient_reducer.h"
#include "core/autograd.h"
#include "core/shards.h"
#include "engine/observe/layer_names.h"
#include "nn/module.h"

namespace lockstep {

// A fault as the programs take it from LOCKSTEP_FAULT.
// KIND:rank=R,step=N, after the step:
//   flipbit   flips one bit of the first parameter
//   kill      sends SIGKILL to the rank
//   stop      sends SIGSTOP to the rank
//   nan       sets an element of the first parameter to NaN
// KIND:rank=R,step=N, within the step:
//   inf       fills gradients of the loss with infinity (LayerFault). ",layer=conv1" takes those of
//             a layer, ",value=1e5" another value; ",count=N" strikes in N steps from this one on.
//   loop      never ends the forward pass of a layer; takes ",layer=conv1" too
//   skip      leaves the rank out of the sums of gradients; steps count from its process's first
//   lost      likewise, but the rank takes part in the sums and never gets them
// KIND:ms=N, which delays by N milliseconds:
//   slow      each step of rank R, given by ",rank=R"
//   slowdisk, slowdecode
//             each read, or decoding, of a photo, on all ranks or, with ",rank=R", on one
//   slownet   the arrival of each sum over ranks; ranks may compute meanwhile
struct Fault {
  static constexpr int kAllRanks = -1;

  std::string kind;
  int rank = 0;
  int64_t number = 0;   // of the step, or of milliseconds
  int64_t count = 1;    // of steps
  std::string layer{};  // empty: the loss
  double value = std::numeric_limits<double>::infinity();

  bool slows_photos() const { return kind == "slowdisk" || kind == "slowdecode"; }
  std::chrono::milliseconds delay() const { return std::chrono::milliseconds(number); }
  bool breaks_layer() const { return kind == "inf" || kind == "loop"; }
  bool breaks_exchange() const { return kind == "slownet" || kind == "skip" || kind == "lost"; }
  bool is_within_step() const { return breaks_layer() || breaks_exchange() || kind == "slow"; }
  bool strikes(int any_rank) const { return rank == kAllRanks || rank == any_rank; }
};

// Delays this rank if the fault strikes it. Call it before the wait for a step's gradients.
void delay(const std::optional<Fault>& fault, int rank);
// An exchange of gradients that the fault disturbs: it sums as the ranks would, but late, or not at
// all in one step. Errors: UsageError off the CPU.
comm::BucketExchange disturbed_exchange(const Fault& fault, Algorithm algorithm, Device device);
// flipbit, nan: damages the first parameter.
void damage_weights(const Fault& fault, nn::Module& model);

// inf: fills a row of each gradient that the loss, or a layer, computes with the fault's value. The
// row is the first image of the first shard that the fault's rank owns, or that shard's leaf. A
// replay on fewer ranks is struck in the same place. loop: never returns from that layer. Thread
// safety: none.
class LayerFault : public TapeListener {
 public:
  // `run_ranks`: of the run that has the fault. Errors: UsageError for a layer that the network
  // does not have.
  LayerFault(const Fault& fault, const nn::Module& model, int64_t run_ranks);

  // Returns the listener for a micro-step of step `step`, from 1: this object where the fault
  // strikes, which forwards to `next`; otherwise `next`.
  TapeListener* listener(int64_t step, const Shards& shards, TapeListener* next);

  void on_result(const TapeOp& op, const Tensor& result) override;
  void on_gradient(const TapeOp& op, size_t i, Tensor& gradient) override;

 private:
  bool strikes(const TapeOp& op) const;

  const Fault fault_;
  const LayerNames names_;
  const int64_t run_ranks_;
  TapeListener* next_ = nullptr;
  int64_t shard_ = 0;  // struck, of the local ones
  int64_t image_ = 0;  // its first row
};

}  // namespace lockstep
