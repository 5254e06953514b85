#include "comm/shared/exchange.h"

#include <cstring>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "comm/schedule.h"
#include "core/error.h"
#include "kernels/elementwise/add.h"
#include "kernels/reduce/peer_sum.h"

namespace lockstep::comm {
namespace {

struct Context {
  int rank;
  std::vector<Tensor> values;
  Stream& stream;
  Traffic& traffic;

  int ranks() const { return static_cast<int>(values.size()); }
  Tensor& mine() { return values[static_cast<size_t>(rank)]; }
  Tensor slice_of_rank(int owner, int slice) const {
    const Tensor& all = values[static_cast<size_t>(owner)];
    const Slice range = slice_of(all.numel(), ranks(), slice);
    return all.slice(range.begin, range.count);
  }
  void count(size_t bytes) { traffic.moved_bytes += static_cast<int64_t>(bytes); }
};

class TreeExchange : public Exchange {
 public:
  explicit TreeExchange(Context context) : context_(std::move(context)) {}

  uint32_t phases() const override { return 1; }
  // The other ranks write their sums to this rank's memory.
  Need need(uint32_t phase) const override {
    return phase == 0 ? Need{} : Need{.rank = Need::kEverybody, .phases = 1};
  }
  void run(uint32_t) override {
    std::vector<Tensor> slices;
    slices.reserve(context_.values.size());
    for (int r = 0; r < context_.ranks(); ++r) {
      slices.push_back(context_.slice_of_rank(r, context_.rank));
    }
    const size_t bytes = slices[0].nbytes();
    if (bytes == 0) return;
    kernels::peer_sum(context_.stream, slices, slices);
    context_.count(2 * bytes * (slices.size() - 1));
  }

 private:
  Context context_;
};

// A phase reads what the left neighbor's phase before it wrote, and writes this rank's memory
// only. The left neighbor writes the same slice again n-1 phases later; by then its wait for its
// own left neighbor, and so on round the ring, includes this rank's read.
class RingExchange : public Exchange {
 public:
  explicit RingExchange(Context context)
      : context_(std::move(context)), steps_(static_cast<uint32_t>(ring_steps(context_.ranks()))) {}

  uint32_t phases() const override { return 2 * steps_; }
  Need need(uint32_t phase) const override {
    // The right neighbor's last phase reads this rank's memory.
    const int neighbor = phase == phases() ? right_of(context_.rank, context_.ranks())
                                           : left_of(context_.rank, context_.ranks());
    return {.rank = neighbor, .phases = phase};
  }
  void run(uint32_t phase) override {
    const int ranks = context_.ranks();
    const bool adds = phase < steps_;
    const int step = static_cast<int>(adds ? phase : phase - steps_);
    const RingStep what = adds ? ring_reduce_step(context_.rank, ranks, step)
                               : ring_gather_step(context_.rank, ranks, step);
    const Tensor from = context_.slice_of_rank(left_of(context_.rank, ranks), what.receive);
    Tensor to = context_.slice_of_rank(context_.rank, what.receive);
    if (to.numel() == 0) return;
    if (adds) {
      kernels::add(context_.stream, from, to);
    } else {
      std::memcpy(to.bytes(), from.bytes(), to.nbytes());
    }
    context_.count(to.nbytes());
  }

 private:
  Context context_;
  const uint32_t steps_;
};

// Rank 0 sums into its own memory, from which the others copy.
class StarExchange : public Exchange {
 public:
  explicit StarExchange(Context context) : context_(std::move(context)) {}

  uint32_t phases() const override { return 1; }
  Need need(uint32_t phase) const override {
    if (context_.rank == 0) {
      return phase == 0 ? Need{} : Need{.rank = Need::kEverybody, .phases = 1};
    }
    return phase == 0 ? Need{.rank = 0, .phases = 1} : Need{};
  }
  void run(uint32_t) override {
    Tensor& mine = context_.mine();
    if (mine.numel() == 0) return;
    if (context_.rank == 0) {
      Tensor sum = mine;
      kernels::peer_sum(context_.stream, context_.values, {&sum, 1});
      context_.count(mine.nbytes() * (context_.values.size() - 1));
    } else {
      std::memcpy(mine.bytes(), context_.values[0].bytes(), mine.nbytes());
      context_.count(mine.nbytes());
    }
  }

 private:
  Context context_;
};

}  // namespace

std::unique_ptr<Exchange> make_exchange(
    Algorithm algorithm, int rank, std::vector<Tensor> values, Stream& stream, Traffic& traffic) {
  Context context{rank, std::move(values), stream, traffic};
  switch (algorithm) {
    case Algorithm::kTree:
      return std::make_unique<TreeExchange>(std::move(context));
    case Algorithm::kRing:
      return std::make_unique<RingExchange>(std::move(context));
    case Algorithm::kStar:
      return std::make_unique<StarExchange>(std::move(context));
    case Algorithm::kLibrary:
    case Algorithm::kNone:
      break;
  }
  throw InternalError(
      fmt::format("[all_reduce] algorithm: got {}, expected tree, ring or star", int(algorithm)));
}

}  // namespace lockstep::comm
