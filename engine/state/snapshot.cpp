#include "engine/state/snapshot.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "core/cuda/memory.h"
#include "core/memory_limit.h"
#include "core/round_up.h"
#include "core/transfer.h"

namespace lockstep {
namespace {

// The alignment of tensors: Tensor::wrap() requires it, and threads then share no cache line.
constexpr size_t kPartAlignment = 64;

size_t part_bytes(const Tensor& tensor) {
  return round_up<size_t>(tensor.nbytes(), kPartAlignment);
}

struct HostCopy {
  size_t offset;  // in the snapshot's memory
  const std::byte* from;
  size_t bytes;
};

// Cuts the snapshot's memory into pieces of `copies`, in order.
class Placement {
 public:
  Placement(Stream& stream, Snapshot& snapshot)
      : stream_(stream), snapshot_(snapshot), memory_(std::make_shared<Tensor>(snapshot.memory)) {}

  void place(std::span<const nn::StateEntry> entries, FileTensors& placed) {
    placed.clear();
    for (const nn::StateEntry& entry : entries) {
      Tensor part = next_part(entry.tensor);
      placed.emplace(entry.name, part.view(entry.file_shape));
      const Shape& shape = part.shape();
      const bool is_ordered = shape.rank() != 4 || shape[1] == 1 || shape[2] * shape[3] == 1;
      if (!is_ordered) snapshot_.channels_last.push_back(std::move(part));
    }
  }

  // Each of the stream's threads copies as many bytes.
  void copy_from_host() {
    const int tasks = stream_.threads();
    const auto cut = [&](int64_t task) {
      return used_ * static_cast<size_t>(task) / static_cast<size_t>(tasks);
    };
    stream_.fork(tasks, [&](int64_t task, int) { copy_range(cut(task), cut(task + 1)); });
  }

 private:
  Tensor next_part(const Tensor& from) {
    std::byte* const begin = memory_->bytes() + used_;
    Tensor part = Tensor::wrap(
        std::shared_ptr<std::byte>(memory_, begin), from.shape(), from.dtype(), Device::kCpu);
    if (from.device() == Device::kCpu) {
      host_copies_.push_back({.offset = used_, .from = from.bytes(), .bytes = from.nbytes()});
    } else {
      transfer(stream_, from, part);
    }
    used_ += part_bytes(from);
    return part;
  }

  void copy_range(size_t begin, size_t end) const {
    for (const HostCopy& copy : host_copies_) {
      const size_t first = std::max(begin, copy.offset);
      const size_t last = std::min(end, copy.offset + copy.bytes);
      if (first >= last) continue;
      std::memcpy(memory_->bytes() + first, copy.from + (first - copy.offset), last - first);
    }
  }

  Stream& stream_;
  Snapshot& snapshot_;
  const std::shared_ptr<Tensor> memory_;
  size_t used_ = 0;
  std::vector<HostCopy> host_copies_;
};

Tensor touched_memory(Stream& stream, int64_t bytes) {
  if (stream.device() == Device::kCuda) return cuda::empty_pinned({bytes}, Dtype::kU8);
  Tensor memory = Tensor::empty({bytes}, Dtype::kU8);
  const int tasks = stream.threads();
  stream.fork(tasks, [&](int64_t task, int) {
    const int64_t begin = bytes * task / tasks;
    std::memset(memory.bytes() + begin, 0, static_cast<size_t>(bytes * (task + 1) / tasks - begin));
  });
  return memory;
}

}  // namespace

void reserve_memory(const SnapshotSource& source, Snapshot& snapshot) {
  size_t bytes = 0;
  for (const auto& entries : {source.model.state(), source.optimizer.state()}) {
    for (const nn::StateEntry& entry : entries) bytes += part_bytes(entry.tensor);
  }
  if (snapshot.memory.defined() && snapshot.memory.nbytes() >= bytes) return;
  require_memory(bytes, "the copy of weights and optimizer that is saved while training goes on");
  snapshot = {};
  snapshot.memory = touched_memory(source.stream, static_cast<int64_t>(bytes));
}

void take_snapshot(const SnapshotSource& source, Snapshot& snapshot) {
  reserve_memory(source, snapshot);
  snapshot.channels_last.clear();
  Placement placement(source.stream, snapshot);
  placement.place(source.model.state(), snapshot.model);
  placement.place(source.optimizer.state(), snapshot.optimizer);
  placement.copy_from_host();
  if (source.stream.device() != Device::kCuda) return;
  if (!snapshot.copied) snapshot.copied.emplace();
  snapshot.copied->record(source.stream.cuda());
}

bool is_there(const Snapshot& snapshot) {
  return !snapshot.copied || snapshot.copied->done();
}

void wait_for(const Snapshot& snapshot) {
  if (snapshot.copied) snapshot.copied->synchronize();
}

// After an error, the list holds the tensors that are still to be permuted.
void put_in_file_order(Snapshot& snapshot) {
  std::vector<Tensor>& left = snapshot.channels_last;
  while (!left.empty()) {
    Tensor& tensor = left.back();
    const int64_t filters = tensor.shape()[0];
    if (filters == 0) {
      left.pop_back();
      continue;
    }
    Tensor filter = tensor.slice(0, 1);
    const Tensor ordered = to_row_major(filter);
    std::memcpy(filter.bytes(), ordered.bytes(), filter.nbytes());
    tensor = tensor.slice(1, filters - 1);
  }
}

}  // namespace lockstep
