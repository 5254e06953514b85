#include "comm/messages/message_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "comm/messages/message_sums.h"

namespace lockstep::comm {
namespace {

class SingleRound : public MessageWork {
 public:
  SingleRound(MessageEngine& engine,
              const Operation& operation,
              std::vector<Send> sends,
              std::vector<Receive> receives)
      : MessageWork(engine, operation), sends_(std::move(sends)), receives_(std::move(receives)) {}

 private:
  bool next_round() override {
    if (started_) return false;
    started_ = true;
    exchange(sends_, receives_);
    return true;
  }

  const std::vector<Send> sends_;
  const std::vector<Receive> receives_;
  bool started_ = false;
};

template <class T>
Tensor copy_of(std::span<const T> values) {
  Tensor copy = Tensor::empty({std::ssize(values)}, DtypeOf<T>::kValue);
  std::ranges::copy(values, copy.data<T>());
  return copy;
}

}  // namespace

MessageCommunicator::MessageCommunicator(std::unique_ptr<MessageTransport> transport,
                                         std::chrono::milliseconds stall_abort)
    : engine_(std::move(transport), stall_abort, traffic_, context_) {}

void MessageCommunicator::barrier() {
  engine_.guard().run([&] {
    const std::byte mine{};
    std::vector<std::byte> all(static_cast<size_t>(size()));
    gather(next(Operation::Kind::kBarrier), {&mine, 1}, all);
  });
}

void MessageCommunicator::broadcast(std::span<std::byte> bytes, int root) {
  engine_.guard().run([&] {
    check_root(root, size());
    std::vector<Send> sends;
    std::vector<Receive> receives;
    if (rank() == root) {
      for (int i = 1; i < size(); ++i) sends.push_back({(root + i) % size(), bytes});
    } else {
      receives.push_back({root, bytes});
    }
    SingleRound work(
        engine_, next(Operation::Kind::kBroadcast), std::move(sends), std::move(receives));
    finish(work);
  });
}

void MessageCommunicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  engine_.guard().run([&] { gather(next(Operation::Kind::kAllGather), mine, all); });
}

std::unique_ptr<Work> MessageCommunicator::start_all_reduce(const AllReduce& what) {
  return engine_.guard().run([&]() -> std::unique_ptr<Work> {
    check_all_reduce_dtype(what.values.dtype());
    const Tensor values = what.values.view({what.values.numel()});
    const Operation operation = next(Operation::Kind::kAllReduce, what.label);
    if (what.algorithm == Algorithm::kNone) return std::make_unique<DoneWork>();
    const auto make = [&]() -> std::unique_ptr<MessageWork> {
      switch (what.algorithm) {
        case Algorithm::kRing:
          return std::make_unique<RingSum>(engine_, operation, stream_, values);
        case Algorithm::kStar:
          return std::make_unique<OwnerSum>(
              engine_, operation, stream_, values, star_slices(values.numel(), size()));
        case Algorithm::kLibrary:
          return std::make_unique<LibrarySum>(engine_, operation, values);
        case Algorithm::kTree:
        case Algorithm::kNone:
          break;
      }
      return std::make_unique<OwnerSum>(
          engine_, operation, stream_, values, tree_slices(values.numel(), size()));
    };
    std::unique_ptr<MessageWork> work = make();
    engine_.launch(*work);
    traffic_.reduced_bytes += static_cast<int64_t>(values.nbytes());
    return work;
  });
}

void MessageCommunicator::all_reduce_sum(std::span<float> values) {
  engine_.guard().run([&] { reduce(next(Operation::Kind::kAllReduce), values); });
}

void MessageCommunicator::all_reduce_sum(std::span<int64_t> values) {
  engine_.guard().run([&] { reduce(next(Operation::Kind::kAllReduceInt64), values); });
}

void MessageCommunicator::gather(const Operation& operation,
                                 std::span<const std::byte> mine,
                                 std::span<std::byte> all) {
  const size_t row = mine.size();
  check_all_gather(row, all.size(), size());
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (int i = 1; i < size(); ++i) {
    const int peer = (rank() + i) % size();
    sends.push_back({peer, mine});
    receives.push_back({peer, all.subspan(static_cast<size_t>(peer) * row, row)});
  }
  SingleRound work(engine_, operation, std::move(sends), std::move(receives));
  finish(work);
  if (row > 0) std::memmove(all.data() + static_cast<size_t>(rank()) * row, mine.data(), row);
}

template <class T>
void MessageCommunicator::reduce(const Operation& operation, std::span<T> values) {
  Tensor sums = copy_of(std::span<const T>(values));
  OwnerSum work(engine_, operation, stream_, sums, tree_slices(sums.numel(), size()));
  finish(work);
  traffic_.reduced_bytes += static_cast<int64_t>(values.size_bytes());
  std::ranges::copy(sums.template span<T>(), values.begin());
}

void MessageCommunicator::finish(MessageWork& work) {
  engine_.launch(work);
  work.wait();
}

}  // namespace lockstep::comm
