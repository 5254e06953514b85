#include "comm/nccl/exchange.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "comm/device_exchange.h"
#include "comm/schedule.h"
#include "core/cuda/graph.h"
#include "core/round_up.h"
#include "kernels/elementwise/add.h"
#include "kernels/elementwise/copy.h"
#include "kernels/reduce/peer_sum.h"

namespace lockstep::comm::nccl {
namespace {

Tensor flat(const Tensor& tensor) {
  return tensor.view({tensor.numel()});
}

// Elements of the largest slice of any bucket, in whole 256 bytes.
int64_t row_of(int ranks, std::span<const Bucket> buckets) {
  int64_t largest = 0;
  for (const Bucket& bucket : buckets) {
    const int64_t unit = unit_of(bucket.values);
    const int64_t units = ceil_div(bucket.values.numel(), unit);
    largest = std::max(largest, ceil_div(units, int64_t{ranks}) * unit);
  }
  return largest;
}

// Overwrites the versions. Each kMaxPeers of them are a subtree, so the order is peer_sum's.
void sum_versions(Stream& stream, std::span<Tensor> versions, Tensor& sum) {
  if (versions.size() <= kernels::kMaxPeers) {
    return kernels::peer_sum(stream, versions, std::span(&sum, 1));
  }
  std::vector<Tensor> roots;
  for (size_t first = 0; first < versions.size(); first += kernels::kMaxPeers) {
    const size_t count = std::min(kernels::kMaxPeers, versions.size() - first);
    const std::span<Tensor> part = versions.subspan(first, count);
    kernels::peer_sum(stream, part, part.first(1));
    roots.push_back(part.front());
  }
  sum_versions(stream, roots, sum);
}

}  // namespace

// The compute stream waits, not the host.
class NcclExchange::Join : public Work {
 public:
  Join(const cuda::Event& summed, Stream& compute) : summed_(summed), compute_(compute) {}

  bool advance() override { return joined_; }  // to join early would hold up the backward pass

  void wait() override {
    if (!joined_) summed_.make_wait(compute_.cuda());
    joined_ = true;
  }

 private:
  const cuda::Event& summed_;
  Stream& compute_;
  bool joined_ = false;
};

NcclExchange::NcclExchange(Ranks& ranks, Stream& compute, std::span<const Bucket> buckets)
    : ranks_(ranks),
      compute_(compute),
      exchange_(Device::kCuda, 1, false, cuda::Priority::kHigh),
      row_(row_of(ranks.size(), buckets)),
      received_(Tensor::empty({row_ * (ranks.size() - 1)},
                              buckets.empty() ? Dtype::kF32 : buckets.front().values.dtype(),
                              Device::kCuda)),
      watchdog_(ranks, {compute.cuda(), exchange_.cuda()}),
      exceptions_(std::uncaught_exceptions()) {}

NcclExchange::~NcclExchange() {
  if (std::uncaught_exceptions() > exceptions_) ranks_.abandon();  // the others may never come
  watchdog_.before_end();                                          // the streams end after it
}

std::unique_ptr<Work> NcclExchange::start(const AllReduce& what) {
  cuda::Event& summed = summed_[what.values.bytes()];
  Tensor values = what.values;
  beside_compute(summed, fmt::format("the sum of {}", what.label), [&] {
    switch (what.algorithm) {
      case Algorithm::kTree:
        sum_tree(values, what.label);
        break;
      case Algorithm::kRing:
        sum_ring(values, what.label);
        break;
      case Algorithm::kLibrary:
        ranks_.group(what.label, [&] { ranks_.all_reduce(values, exchange_); });
        break;
      default:
        throw UsageError("NCCL sums by the tree, the ring or its own all-reduce",
                         "the star is the host's",
                         "use the tree, or let gradients travel through the host",
                         Remedy::kAlgorithm);
    }
  });
  return std::make_unique<Join>(summed, compute_);
}

void NcclExchange::gather_rows(std::span<const Tensor> mine,
                               std::span<const int64_t> first_rows,
                               std::span<Tensor> all) {
  constexpr std::string_view kLabel = "rows of all ranks";
  const int size = ranks_.size(), me = ranks_.rank();
  const auto rows_of = [&](const Tensor& tensor, int rank) {
    const int64_t first = first_rows[static_cast<size_t>(rank)];
    return flat(tensor.slice(first, first_rows[static_cast<size_t>(rank) + 1] - first));
  };
  beside_compute(gathered_, kLabel, [&] {
    if (size > 1) {
      ranks_.group(kLabel, [&] {
        for (int step = 1; step < size; ++step) {
          const int other = (me + step) % size;
          for (size_t i = 0; i < mine.size(); ++i) {
            send(flat(mine[i]), other);
            receive(rows_of(all[i], other), other);
          }
        }
      });
    }
    for (size_t i = 0; i < mine.size(); ++i) {
      Tensor own = rows_of(all[i], me);
      if (own.numel() > 0) kernels::copy(exchange_, flat(mine[i]), own);
    }
  });
  gathered_.make_wait(compute_.cuda());
}

void NcclExchange::broadcast(std::span<Tensor> tensors, int root) {
  const std::string label = fmt::format("tensors of rank {}", root);
  beside_compute(handed_out_, label, [&] {
    ranks_.group(label, [&] {
      for (Tensor& tensor : tensors) {
        if (tensor.numel() > 0) ranks_.broadcast(tensor, root, exchange_);
      }
    });
  });
  handed_out_.make_wait(compute_.cuda());
}

void NcclExchange::beside_compute(cuda::Event& done,
                                  std::string_view label,
                                  FunctionRef<void()> body) {
  ready_.record(compute_.cuda());
  ready_.make_wait(exchange_.cuda());
  body();
  done.record(exchange_.cuda());
  watchdog_.track(done, label, cuda::is_recording(exchange_.cuda()));
}

// Both leave out what is empty on both sides.
void NcclExchange::send(const Tensor& from, int to) {
  if (from.numel() > 0) ranks_.send(from, to, exchange_);
}

void NcclExchange::receive(Tensor to, int from) {
  if (to.numel() > 0) ranks_.receive(to, from, exchange_);
}

void NcclExchange::sum_tree(Tensor& values, std::string_view label) {
  const int size = ranks_.size(), me = ranks_.rank();
  const auto slice = [&](int rank) { return part_of_rank(values, size, rank); };
  Tensor mine = slice(me);
  std::vector<Tensor> versions;
  for (int rank = 0, row = 0; rank < size; ++rank) {
    versions.push_back(rank == me ? mine : received_.slice(row_ * row++, mine.numel()));
  }
  const auto with_others = [&](auto&& call) {
    ranks_.group(label, [&] {
      for (int step = 1; step < size; ++step) call((me + step) % size);
    });
  };
  if (size > 1) {
    with_others([&](int other) {
      send(slice(other), other);
      receive(versions[static_cast<size_t>(other)], other);
    });
  }
  if (mine.numel() > 0) sum_versions(exchange_, versions, mine);
  if (size > 1) {
    with_others([&](int other) {
      send(mine, other);
      receive(slice(other), other);
    });
  }
}

void NcclExchange::sum_ring(Tensor& values, std::string_view label) {
  const int size = ranks_.size(), me = ranks_.rank();
  const auto slice = [&](int rank) { return part_of_rank(values, size, rank); };
  const auto pass_on = [&](const Tensor& from, const Tensor& to) {
    ranks_.group(label, [&] {
      send(from, right_of(me, size));
      receive(to, left_of(me, size));
    });
  };
  for (int step = 0; step < ring_steps(size); ++step) {
    const RingStep now = ring_reduce_step(me, size, step);
    Tensor grown = slice(now.receive);
    const Tensor from_left = received_.slice(0, grown.numel());
    pass_on(slice(now.send), from_left);
    if (grown.numel() > 0) kernels::add(exchange_, from_left, grown);
  }
  for (int step = 0; step < ring_steps(size); ++step) {
    const RingStep now = ring_gather_step(me, size, step);
    pass_on(slice(now.send), slice(now.receive));
  }
}

}  // namespace lockstep::comm::nccl
