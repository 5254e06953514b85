#include "comm/messages/message_sums.h"

#include <algorithm>
#include <utility>

#include "core/tree.h"
#include "kernels/elementwise/add.h"
#include "kernels/reduce/peer_sum.h"

namespace lockstep::comm {
namespace {

std::span<const std::byte> sent(const Tensor& tensor) {
  return {tensor.bytes(), tensor.nbytes()};
}
std::span<std::byte> received(Tensor tensor) {
  return {tensor.bytes(), tensor.nbytes()};
}

Tensor slice_at(const Tensor& values, const Slice& slice) {
  return values.slice(slice.begin, slice.count);
}

// Overwrites all leaves; `sum` is one of them.
void sum_integers(std::span<Tensor> leaves, Tensor& sum) {
  for_each_tree_merge(std::ssize(leaves), [&](int64_t into, int64_t from) {
    const std::span<int64_t> node = leaves[static_cast<size_t>(into)].span<int64_t>();
    const std::span<int64_t> term = leaves[static_cast<size_t>(from)].span<int64_t>();
    for (size_t i = 0; i < node.size(); ++i) node[i] += term[i];
  });
  if (sum.bytes() != leaves[0].bytes()) {
    std::ranges::copy(leaves[0].span<int64_t>(), sum.data<int64_t>());
  }
}

}  // namespace

OwnerSum::OwnerSum(MessageEngine& engine,
                   const Operation& operation,
                   Stream& stream,
                   Tensor values,
                   std::vector<Slice> slices)
    : MessageWork(engine, operation, std::move(values)),
      stream_(stream),
      slices_(std::move(slices)) {}

bool OwnerSum::next_round() {
  switch (next_++) {
    case 0:
      collect();
      return true;
    case 1:
      sum();
      send_sums();
      return true;
    default:
      return false;
  }
}

void OwnerSum::collect() {
  const int64_t own = slices_[static_cast<size_t>(rank())].count;
  const Tensor memory = Tensor::empty({own * (size() - 1)}, values().dtype());
  leaves_.assign(static_cast<size_t>(size()), slice(rank()));
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int i = 1; i < size(); ++i) {  // from the right neighbor on, so that no rank is hit by all
    const int peer = (rank() + i) % size();
    Tensor& leaf = leaves_[static_cast<size_t>(peer)];
    leaf = memory.slice((i - 1) * own, own);
    sends.push_back({peer, sent(slice(peer))});
    receives.push_back({peer, received(leaf)});
  }
  exchange(sends, receives);
}

void OwnerSum::sum() {
  Tensor own = slice(rank());
  if (values().dtype() == Dtype::kI64) {
    sum_integers(leaves_, own);
  } else {
    kernels::peer_sum(stream_, leaves_, {&own, 1});
  }
  leaves_.clear();
}

void OwnerSum::send_sums() {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank() + i) % size();
    sends.push_back({peer, sent(slice(rank()))});
    receives.push_back({peer, received(slice(peer))});
  }
  exchange(sends, receives);
}

Tensor OwnerSum::slice(int owner) const {
  return slice_at(values(), slices_[static_cast<size_t>(owner)]);
}

RingSum::RingSum(MessageEngine& engine, const Operation& operation, Stream& stream, Tensor values)
    : MessageWork(engine, operation, std::move(values)),
      stream_(stream),
      received_(Tensor::empty({(this->values().numel() + size() - 1) / size()},
                              this->values().dtype())) {}

bool RingSum::next_round() {
  const int steps = ring_steps(size());
  const auto room_for = [this](int index) { return received_.slice(0, slice(index).numel()); };
  if (0 < step_ && step_ <= steps) {
    const int index = ring_reduce_step(rank(), size(), step_ - 1).receive;
    Tensor grown = slice(index);
    kernels::add(stream_, room_for(index), grown);
  }
  if (step_ == 2 * steps) return false;

  const bool reducing = step_ < steps;
  const RingStep now = reducing ? ring_reduce_step(rank(), size(), step_)
                                : ring_gather_step(rank(), size(), step_ - steps);
  const Send send{right_of(rank(), size()), sent(slice(now.send))};
  const Tensor into = reducing ? room_for(now.receive) : slice(now.receive);
  const Receive receive{left_of(rank(), size()), received(into)};
  exchange({&send, 1}, {&receive, 1});
  ++step_;
  return true;
}

Tensor RingSum::slice(int index) const {
  return slice_at(values(), slice_of(values().numel(), size(), index));
}

LibrarySum::LibrarySum(MessageEngine& engine, const Operation& operation, Tensor values)
    : MessageWork(engine, operation, std::move(values)) {}

bool LibrarySum::next_round() {
  if (started_) return false;
  started_ = true;
  sum_by_library();
  return true;
}

std::vector<Slice> tree_slices(int64_t count, int ranks) {
  std::vector<Slice> slices;
  slices.reserve(static_cast<size_t>(ranks));
  for (int owner = 0; owner < ranks; ++owner) slices.push_back(slice_of(count, ranks, owner));
  return slices;
}

std::vector<Slice> star_slices(int64_t count, int ranks) {
  std::vector<Slice> slices(static_cast<size_t>(ranks), Slice{count, 0});
  slices[0] = {0, count};
  return slices;
}

}  // namespace lockstep::comm
