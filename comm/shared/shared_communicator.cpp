#include "comm/shared/shared_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "kernels/reduce/peer_sum.h"

namespace lockstep::comm {
namespace {

using Kind = Operation::Kind;

constexpr size_t kPieceBytes = size_t{256} << 10;

class QueuedWork : public Work {
 public:
  QueuedWork(CallGuard& guard, CallQueue& queue, std::shared_ptr<const Call> call)
      : guard_(guard), queue_(queue), call_(std::move(call)) {}

  bool advance() override {
    if (!call_->is_over) guard_.run([&] { queue_.advance(); });
    return call_->is_over;
  }
  void wait() override {
    if (!call_->is_over) guard_.run([&] { queue_.wait(*call_); });
  }

 private:
  CallGuard& guard_;
  CallQueue& queue_;
  const std::shared_ptr<const Call> call_;
};

// Wraps memory that something else keeps alive, as a flat tensor.
Tensor borrow(std::byte* data, int64_t count, Dtype dtype) {
  return Tensor::wrap(
      std::shared_ptr<std::byte>(std::shared_ptr<void>(), data), {count}, dtype, Device::kCpu);
}

Operation operation_of(const CallRecord& record, std::string_view label = {}) {
  return {record.kind, record.sequence, label};
}

void copy_bytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
}

// Calls piece(begin, count) over [0, bytes). Calls it once for 0 bytes, because the ranks meet then
// too.
template <class Piece>
void for_each_piece(size_t bytes, size_t max_bytes, Piece&& piece) {
  size_t begin = 0;
  do {
    const size_t count = std::min(max_bytes, bytes - begin);
    piece(begin, count);
    begin += count;
  } while (begin < bytes);
}

}  // namespace

SharedCommunicator::SharedCommunicator(std::unique_ptr<SharedHost> host,
                                       std::chrono::milliseconds stall_abort)
    : host_(std::move(host)),
      rank_(host_->rank()),
      size_(host_->size()),
      stream_(Device::kCpu),
      queue_(*host_, stall_abort, context_) {
  const Segment staging = host_->allocate(2 * kPieceBytes, {Kind::kAllocate, 0});
  staging_ = staging.memory;
  halves_[0] = staging.parts;
  for (std::byte* part : staging.parts) halves_[1].push_back(part + kPieceBytes);
}

std::vector<int> SharedCommunicator::gone() {
  std::vector<int> gone;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_ && host_->is_gone(peer)) gone.push_back(peer);
  }
  return gone;
}

Tensor SharedCommunicator::allocate(const Shape& shape, Dtype dtype) {
  return guard_.run([&] {
    const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
    const CallRecord record = next(Kind::kAllocate, bytes, dtype);
    wait_for_all(record);
    const Segment segment = host_->allocate(bytes, operation_of(record));
    segments_.push_back({segment.memory, segment.parts, segment.bytes});
    std::byte* mine = segment.parts[static_cast<size_t>(rank_)];
    return Tensor::wrap({segment.memory, mine}, shape, dtype, Device::kCpu);
  });
}

void SharedCommunicator::barrier() {
  guard_.run([&] { wait_for_all(next(Kind::kBarrier, 0)); });
}

void SharedCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  guard_.run([&] {
    check_root(root, size_);
    CallRecord record = next(Kind::kBroadcast, bytes.size());
    record.root = root;
    for_each_piece(bytes.size(), kPieceBytes, [&](size_t begin, size_t count) {
      std::byte* half = next_half()[static_cast<size_t>(root)];
      if (rank_ == root) copy_bytes(half, bytes.data() + begin, count);
      wait_for_all(record);
      if (rank_ != root) copy_bytes(bytes.data() + begin, half, count);
    });
    if (rank_ != root) traffic_.moved_bytes += std::ssize(bytes);
  });
}

void SharedCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  guard_.run([&] {
    const size_t row = mine.size();
    check_all_gather(row, all.size(), size_);
    const CallRecord record = next(Kind::kAllGather, row);
    for_each_piece(row, kPieceBytes, [&](size_t begin, size_t count) {
      const auto halves = next_half();
      copy_bytes(halves[static_cast<size_t>(rank_)], mine.data() + begin, count);
      wait_for_all(record);
      for (size_t r = 0; r < halves.size(); ++r) {
        copy_bytes(all.data() + r * row + begin, halves[r], count);
      }
    });
    traffic_.moved_bytes += static_cast<int64_t>(all.size() - row);
  });
}

std::unique_ptr<Work> SharedCommunicator::start_all_reduce(const AllReduce& what) {
  return guard_.run([&]() -> std::unique_ptr<Work> {
    const Tensor& values = what.values;
    CallRecord record = next(Kind::kAllReduce, values.nbytes(), values.dtype());
    const Operation operation = operation_of(record, what.label);
    check_all_reduce_dtype(values.dtype());
    if (what.algorithm == Algorithm::kLibrary) return start_library_sum(what);
    if (what.algorithm == Algorithm::kNone) return std::make_unique<DoneWork>();

    traffic_.reduced_bytes += static_cast<int64_t>(values.nbytes());
    record.algorithm = what.algorithm;
    std::vector<Tensor> shared = find_shared(values, record);
    if (shared.empty()) {
      reduce_staged(operation, record, values);
      return std::make_unique<DoneWork>();
    }
    auto exchange = make_exchange(what.algorithm, rank_, std::move(shared), stream_, traffic_);
    return std::make_unique<QueuedWork>(
        guard_, queue_, queue_.post(operation, record, std::move(exchange)));
  });
}

std::unique_ptr<Work> SharedCommunicator::start_library_sum(const AllReduce&) {
  throw no_library_sum_error();
}

void SharedCommunicator::all_reduce_sum(std::span<float> values) {
  guard_.run([&] {
    auto* data = reinterpret_cast<std::byte*>(values.data());
    start_all_reduce({.values = borrow(data, std::ssize(values), Dtype::kF32)})->wait();
  });
}

void SharedCommunicator::all_reduce_sum(std::span<int64_t> values) {
  guard_.run([&] {
    const CallRecord record = next(Kind::kAllReduceInt64, values.size_bytes(), Dtype::kI64);
    for_each_piece(values.size_bytes(), kPieceBytes, [&](size_t begin, size_t count) {
      auto* sums = reinterpret_cast<std::byte*>(values.data()) + begin;
      const auto piece = values.subspan(begin / sizeof(int64_t), count / sizeof(int64_t));
      const auto halves = next_half();
      copy_bytes(halves[static_cast<size_t>(rank_)], sums, count);
      wait_for_all(record);
      for (int r = 0; r < size_; ++r) {
        if (r == rank_) continue;
        const auto* theirs = reinterpret_cast<const int64_t*>(halves[static_cast<size_t>(r)]);
        for (size_t i = 0; i < piece.size(); ++i) piece[i] += theirs[i];
      }
    });
    traffic_.moved_bytes += std::ssize(std::as_bytes(values)) * (size_ - 1);
    traffic_.reduced_bytes += std::ssize(std::as_bytes(values));
  });
}

// A rank enters its staged call m when m-1 is over and read. That was over when all ranks had
// entered it, each after reading m-2: nobody needs that half any more.
std::span<std::byte* const> SharedCommunicator::next_half() {
  return halves_[staged_calls_++ % 2];
}

CallRecord SharedCommunicator::next(Kind kind, size_t bytes, Dtype dtype) {
  CallRecord record;
  record.sequence = ++sequence_;
  record.kind = kind;
  record.bytes = bytes;
  record.dtype = dtype;
  return record;
}

void SharedCommunicator::wait_for_all(const CallRecord& record) {
  queue_.wait(*queue_.post(operation_of(record), record, nullptr));
}

std::vector<Tensor> SharedCommunicator::find_shared(const Tensor& values,
                                                    CallRecord& record) const {
  std::vector<Tensor> found;
  if (values.nbytes() == 0) return found;
  const auto address = reinterpret_cast<uintptr_t>(values.bytes());
  for (size_t k = 0; k < segments_.size(); ++k) {
    const KnownSegment& segment = segments_[k];
    const auto begin = reinterpret_cast<uintptr_t>(segment.parts[static_cast<size_t>(rank_)]);
    if (address < begin || address + values.nbytes() > begin + segment.bytes) continue;
    const std::shared_ptr<void> memory = segment.memory.lock();
    if (!memory) continue;  // other memory has its addresses now
    record.segment = static_cast<int32_t>(k);
    record.offset = address - begin;
    for (std::byte* part : segment.parts) {
      found.push_back(Tensor::wrap(
          {memory, part + record.offset}, {values.numel()}, values.dtype(), Device::kCpu));
    }
    break;
  }
  return found;
}

void SharedCommunicator::reduce_staged(const Operation& operation,
                                       const CallRecord& record,
                                       const Tensor& values) {
  Tensor target = values;
  for_each_piece(values.nbytes(), kPieceBytes, [&](size_t begin, size_t count) {
    const auto halves = next_half();
    std::byte* half = halves[static_cast<size_t>(rank_)];
    copy_bytes(half, target.bytes() + begin, count);
    std::vector<Tensor> shared;
    for (std::byte* data : halves) {
      shared.push_back(
          borrow(data, static_cast<int64_t>(count / size_of(record.dtype)), record.dtype));
    }
    auto exchange = make_exchange(record.algorithm, rank_, std::move(shared), stream_, traffic_);
    queue_.wait(*queue_.post(operation, record, std::move(exchange)));
    copy_bytes(target.bytes() + begin, half, count);
  });
}

}  // namespace lockstep::comm
