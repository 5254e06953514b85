// The interface of objects that see each tensor on the tape, such as a black box.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace lockstep {

class Var;

// An op on the tape.
struct TapeOp {
  std::string_view name;
  uint64_t number = 0;  // its own; the same when its gradient is computed
  std::span<const Var> inputs;
};

// A batch carries one (core/autograd.h). Calls come in the order of the ops, which is the same on
// every rank.
class TapeListener {
 public:
  TapeListener() = default;
  TapeListener(const TapeListener&) = delete;
  TapeListener& operator=(const TapeListener&) = delete;
  virtual ~TapeListener() = default;

  // An op has computed its result; only while the batch is recording.
  virtual void on_result(const TapeOp& op, const Tensor& result) = 0;
  // backward() has computed the gradient of the op's input `i`, and added it to what other
  // consumers of that input gave. It may be changed. Shapes: core/autograd.h.
  virtual void on_gradient(const TapeOp& op, size_t i, Tensor& gradient) = 0;
};

}  // namespace lockstep
