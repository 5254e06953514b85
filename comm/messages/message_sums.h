// Sums over ranks by comm/schedule.h, one class a schedule.
#pragma once

#include <span>
#include <vector>

#include "comm/messages/message_engine.h"
#include "comm/schedule.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace lockstep::comm {

// Tree and star: the owner of a slice collects it from all ranks, sums it in core/tree.h's order
// and sends the sum to all.
class OwnerSum : public MessageWork {
 public:
  // slices[r] is rank r's own. Shapes: values (N), f32, f16, bf16 or i64.
  OwnerSum(MessageEngine& engine,
           const Operation& operation,
           Stream& stream,
           Tensor values,
           std::vector<Slice> slices);
  OwnerSum(const OwnerSum&) = delete;
  OwnerSum& operator=(const OwnerSum&) = delete;
  ~OwnerSum() override { end_round(); }

 private:
  bool next_round() override;
  void collect();
  void sum();
  void send_sums();
  Tensor slice(int owner) const;

  Stream& stream_;
  const std::vector<Slice> slices_;
  std::vector<Tensor> leaves_;  // every rank's part of the own slice
  int next_ = 0;
};

// Shapes: values (N), f32, f16 or bf16.
class RingSum : public MessageWork {
 public:
  RingSum(MessageEngine& engine, const Operation& operation, Stream& stream, Tensor values);
  RingSum(const RingSum&) = delete;
  RingSum& operator=(const RingSum&) = delete;
  ~RingSum() override { end_round(); }

 private:
  bool next_round() override;
  Tensor slice(int index) const;

  Stream& stream_;
  Tensor received_;  // holds the largest slice
  int step_ = 0;     // of both halves
};

// The transport's own sum.
class LibrarySum : public MessageWork {
 public:
  LibrarySum(MessageEngine& engine, const Operation& operation, Tensor values);

 private:
  bool next_round() override;

  bool started_ = false;
};

// Slices for OwnerSum.
std::vector<Slice> tree_slices(int64_t count, int ranks);
std::vector<Slice> star_slices(int64_t count, int ranks);

}  // namespace lockstep::comm
