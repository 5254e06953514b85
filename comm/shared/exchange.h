// The all-reduce algorithms for ranks that can access each other's memory. comm/schedule.h
// describes them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/communicator.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace lockstep::comm {

// The phases that others must have done before a rank may go on.
struct Need {
  static constexpr int kNobody = -1;
  static constexpr int kEverybody = -2;

  int rank = kNobody;
  uint32_t phases = 0;  // of the same exchange
};

// One all-reduce as one rank sees it: a few phases that run in order, the first when all ranks have
// entered the call.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  virtual uint32_t phases() const = 0;  // the same on all ranks
  // Before phase `phase`; need(phases()): before this rank's values are final and its own again.
  virtual Need need(uint32_t phase) const = 0;
  virtual void run(uint32_t phase) = 0;
};

// values[r]: rank r's, (N) f32, f16 or bf16. Stream and traffic must outlive the exchange.
// Requires: kTree, kRing or kStar.
std::unique_ptr<Exchange> make_exchange(
    Algorithm algorithm, int rank, std::vector<Tensor> values, Stream& stream, Traffic& traffic);

}  // namespace lockstep::comm
