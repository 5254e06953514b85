#include "comm/direct_communicator.h"

#include <algorithm>
#include <cstring>

#include "core/tree.h"

namespace lockstep::comm {
namespace {

// Sums rows[0..n) into rows[0], element by element in tree order. All rows are overwritten.
template <class T>
void sum_rows(std::span<T* const> rows, int64_t columns) {
  constexpr int64_t kBlock = 2048;  // a block of every row stays in the cache
  for (int64_t begin = 0; begin < columns; begin += kBlock) {
    const int64_t end = std::min(columns, begin + kBlock);
    for_each_tree_merge(std::ssize(rows), [&](int64_t into, int64_t from) {
      T* sum = rows[static_cast<size_t>(into)];
      const T* term = rows[static_cast<size_t>(from)];
      for (int64_t i = begin; i < end; ++i) sum[i] = sum[i] + term[i];
    });
  }
}

class DoneWork : public Work {
 public:
  bool advance() override { return true; }
  void wait() override {}
};

}  // namespace

DirectCommunicator::DirectCommunicator(int rank, int size) : rank_(rank), size_(size) {
  LS_CHECK(0 <= rank && rank < size, "[communicator] rank: got {} of {}", rank, size);
}

void DirectCommunicator::barrier() {
  const std::byte mine{};
  std::vector<std::byte> all(static_cast<size_t>(size_));
  gather(next(Operation::Kind::kBarrier), {&mine, 1}, all);
}

void DirectCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  LS_CHECK(0 <= root && root < size_, "[broadcast] root: got {} of {} ranks", root, size_);
  if (rank_ == root) {
    for (int peer = 0; peer < size_; ++peer) send(peer, bytes);
  } else {
    receive(root, bytes);
  }
  flush(next(Operation::Kind::kBroadcast));
}

void DirectCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  gather(next(Operation::Kind::kAllGather), mine, all);
}

void DirectCommunicator::all_reduce_sum(std::span<float> values) {
  reduce(next(Operation::Kind::kAllReduce), values);
}

void DirectCommunicator::all_reduce_sum(std::span<int64_t> values) {
  reduce(next(Operation::Kind::kAllReduceInt64), values);
}

std::unique_ptr<Work> DirectCommunicator::start_all_reduce(const AllReduce& what) {
  Tensor values = what.values;
  all_reduce_sum(values.span<float>());
  return std::make_unique<DoneWork>();
}

void DirectCommunicator::reduce_scatter_sum(std::span<const float> values, std::span<float> mine) {
  std::vector<float> sums(values.begin(), values.end());
  all_reduce_sum(sums);
  std::ranges::copy(std::span(sums).subspan(static_cast<size_t>(rank_) * mine.size(), mine.size()),
                    mine.begin());
}

void DirectCommunicator::gather(const Operation& operation,
                                std::span<const std::byte> mine,
                                std::span<std::byte> all) {
  const size_t row = mine.size();
  LS_CHECK(all.size() == row * static_cast<size_t>(size_),
           "[all_gather] all: got {} bytes, expected {} from each of {} ranks",
           all.size(),
           row,
           size_);
  for (int i = 1; i < size_; ++i) {
    const int peer = (rank_ + i) % size_;
    send(peer, mine);
    receive(peer, all.subspan(static_cast<size_t>(peer) * row, row));
  }
  flush(operation);
  if (row > 0) std::memmove(all.data() + static_cast<size_t>(rank_) * row, mine.data(), row);
}

template <class T>
void DirectCommunicator::reduce(const Operation& operation, std::span<T> values) {
  const auto ranks = static_cast<size_t>(size_);
  const auto slice = [&](int owner) {
    const size_t begin = values.size() * static_cast<size_t>(owner) / ranks;
    return values.subspan(begin, values.size() * static_cast<size_t>(owner + 1) / ranks - begin);
  };
  const std::span<T> own = slice(rank_);
  const size_t row_bytes = own.size_bytes();
  if (received_.nbytes() < row_bytes * ranks) {
    received_ = Tensor::empty({static_cast<int64_t>(row_bytes * ranks)}, Dtype::kU8);
  }
  std::vector<T*> rows(ranks);  // rank r's part of the own slice
  rows[static_cast<size_t>(rank_)] = own.data();

  for (int i = 1; i < size_; ++i) {  // from the right neighbour on, so that no rank is hit by all
    const int peer = (rank_ + i) % size_;
    std::byte* row = received_.bytes() + static_cast<size_t>(peer) * row_bytes;
    rows[static_cast<size_t>(peer)] = reinterpret_cast<T*>(row);
    send(peer, std::as_bytes(slice(peer)));
    receive(peer, {row, row_bytes});
  }
  flush(operation);

  sum_rows<T>(rows, std::ssize(own));
  if (rank_ != 0 && !own.empty()) std::memcpy(own.data(), rows[0], row_bytes);

  for (int i = 1; i < size_; ++i) {
    const int peer = (rank_ + i) % size_;
    send(peer, std::as_bytes(own));
    receive(peer, std::as_writable_bytes(slice(peer)));
  }
  flush(operation);
}

void DirectCommunicator::send(int to, std::span<const std::byte> bytes) {
  if (to != rank_ && !bytes.empty()) sends_.push_back({to, bytes});
}

void DirectCommunicator::receive(int from, std::span<std::byte> bytes) {
  if (!bytes.empty()) receives_.push_back({from, bytes});
}

void DirectCommunicator::flush(const Operation& operation) {
  exchange(operation, sends_, receives_);
  sends_.clear();
  receives_.clear();
}

}  // namespace lockstep::comm
