// From the gradients of each shard to their sum over all shards of all ranks.
#pragma once

#include <string>
#include <vector>

#include "core/autograd.h"
#include "core/communicator.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace lockstep::comm {

// Each gradient is summed over this rank's shards as soon as backward() has finished it, and over
// the ranks in finish(). Both sums follow core/tree.h: when the ranks' shards are subtrees, the
// result does not depend on their number.
// Owns: memory for all gradients, which the parameters share after finish(), and the parameters'
// on_grad_ready hooks. Thread safety: none.
class GradientReducer {
 public:
  // `names` are for errors, one a parameter. The communicator and the stream must outlive this.
  // Errors: DtypeError unless parameters are f32.
  GradientReducer(Communicator& peers,
                  Stream& stream,
                  std::vector<Var> parameters,
                  std::vector<std::string> names);
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;
  ~GradientReducer();

  // After the step's last backward(), on all ranks: every parameter's grad() becomes the sum, of
  // the parameter's shape, valid until the next backward(). Errors: InternalError naming the
  // parameters that require a gradient and got none; CommError.
  void finish();

 private:
  void on_grad_ready(size_t parameter);
  void check_complete() const;

  Communicator& peers_;
  Stream& stream_;
  std::vector<Var> parameters_;
  const std::vector<std::string> names_;
  Tensor sums_;                // every view starts at a multiple of 256 bytes; zero between them
  std::vector<Tensor> views_;  // flat, one a parameter
  std::vector<bool> ready_;
};

}  // namespace lockstep::comm
