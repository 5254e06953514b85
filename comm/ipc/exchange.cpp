#include "comm/ipc/exchange.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/core.h>

#include "comm/device_exchange.h"
#include "comm/gather.h"
#include "core/check.h"
#include "core/cuda/device.h"
#include "core/cuda/ipc.h"
#include "core/error.h"
#include "core/transfer.h"
#include "kernels/reduce/peer_sum.h"

namespace lockstep::comm::ipc {
namespace {

// The part of a bucket that rank `owner` sums, on every rank.
std::vector<Tensor> slices_of(const PeerBucket& bucket, int owner) {
  const auto ranks = static_cast<int>(bucket.values.size());
  std::vector<Tensor> slices;
  slices.reserve(bucket.values.size());
  for (const Tensor& values : bucket.values) {
    slices.push_back(part_of_rank(values, ranks, owner));
  }
  return slices;
}

}  // namespace

// The compute stream waits, not the host.
class IpcExchange::Sum : public Work {
 public:
  Sum(IpcExchange& owner, Route& route, std::string_view label)
      : owner_(owner), route_(route), label_(label) {}

  bool advance() override {
    if (!joined_) owner_.launch_what_is_ready();
    return joined_;  // to join early would hold up the backward pass
  }

  void wait() override {
    if (joined_) return;
    owner_.launch_all(label_);
    for (const cuda::InterprocessEvent& done : route_.bucket.done)
      done.make_wait(owner_.compute_.cuda());
    joined_ = true;
  }

 private:
  IpcExchange& owner_;
  Route& route_;
  const std::string_view label_;
  bool joined_ = false;
};

IpcExchange::IpcExchange(Communicator& peers,
                         Stream& compute,
                         std::span<const Bucket> buckets,
                         std::chrono::milliseconds deadline)
    : peers_(peers),
      compute_(compute),
      exchange_(Device::kCuda, 1, false, cuda::Priority::kHigh),
      watchdog_(peers, deadline, {compute.cuda(), exchange_.cuda()}),
      exceptions_(std::uncaught_exceptions()) {
  for (PeerBucket& bucket : share_buckets(peers, buckets)) {
    routes_.push_back({.bucket = std::move(bucket),
                       .signal = peers.allocate({1}, Dtype::kF32),
                       .announced = nullptr});
  }
}

IpcExchange::~IpcExchange() {
  watchdog_.before_end();
  if (std::uncaught_exceptions() > exceptions_) return;  // the others may never come here
  std::vector<cuda::InterprocessEvent> own;  // which end after the others have closed theirs
  const auto me = static_cast<size_t>(peers_.rank());
  for (const Route& route : routes_) {
    own.push_back(route.bucket.ready[me]);
    own.push_back(route.bucket.done[me]);
  }
  try {
    peers_.barrier();  // nobody's work needs what the others share
    routes_.clear();
    peers_.barrier();           // nobody maps what is freed now
  } catch (const CommError&) {  // a rank was lost after the last sum: the next call says so
    routes_.clear();
  }
}

std::unique_ptr<Work> IpcExchange::start(const AllReduce& what) {
  if (what.algorithm != Algorithm::kTree) {
    throw UsageError("CUDA IPC sums by the tree alone",
                     "the ring and the star are the host's, and IPC has no sum of its own",
                     "use the tree, or let gradients travel through the host",
                     Remedy::kAlgorithm);
  }
  const auto me = static_cast<size_t>(peers_.rank());
  const auto found = std::ranges::find_if(routes_, [&](const Route& route) {
    return route.bucket.values[me].bytes() == what.values.bytes();
  });
  LS_CHECK(found != routes_.end(), "[ipc_exchange] values: not one of the buckets");
  Route& route = *found;
  route.bucket.ready[me].record(compute_.cuda());
  route.launched = false;
  watchdog_.guard([&] {
    route.announced = peers_.start_all_reduce({.values = route.signal, .label = what.label});
  });
  under_way_.push_back(&route);
  return std::make_unique<Sum>(*this, route, what.label);
}

void IpcExchange::launch_what_is_ready() {
  for (Route* const route : under_way_) {
    if (route->launched) continue;
    bool ready = false;
    watchdog_.guard([&] { ready = route->announced->advance(); });
    if (!ready) return;
    launch(*route);
  }
}

void IpcExchange::launch(Route& route) {
  const PeerBucket& bucket = route.bucket;
  for (const cuda::InterprocessEvent& ready : bucket.ready) ready.make_wait(exchange_.cuda());
  std::vector<Tensor> slices = slices_of(bucket, peers_.rank());
  if (slices.front().numel() > 0) kernels::peer_sum(exchange_, slices, slices);
  cuda::InterprocessEvent done = bucket.done[static_cast<size_t>(peers_.rank())];
  done.record(exchange_.cuda());
  watchdog_.track(done, bucket.label);
  route.launched = true;
}

// One meeting of the hosts serves all sums that are under way.
void IpcExchange::launch_all(std::string_view label) {
  if (under_way_.empty()) return;
  for (Route* const route : under_way_) {
    watchdog_.guard([&] { route->announced->wait(); });
    if (!route->launched) launch(*route);
    route->announced.reset();
  }
  watchdog_.guard([&] {
    const Tensor& signal = under_way_.front()->signal;
    peers_.start_all_reduce({.values = signal, .label = label})->wait();
  });
  under_way_.clear();
}

namespace {

void check_reach(const std::vector<std::string>& devices) {
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    if (cuda::can_reach(devices[rank])) continue;
    throw EnvironmentError(
        fmt::format("its kernels cannot reach the memory of rank {}'s GPU", rank),
        fmt::format("{} is not visible to it or no peer of its own, {}",
                    devices[rank],
                    cuda::device_properties().uuid));
  }
}

// Whole numbers, whose sum is exact. If CUDA mapped the memory wrongly, the sum differs.
bool sums_right(Communicator& peers, std::chrono::milliseconds deadline) {
  const int64_t ranks = peers.size();
  Bucket bucket;
  bucket.values = Tensor::zeros({100 * ranks}, Dtype::kF32, Device::kCuda);
  bucket.label = "the trial of CUDA IPC";
  Tensor mine = Tensor::empty(bucket.values.shape(), Dtype::kF32);
  for (int64_t i = 0; i < mine.numel(); ++i) {
    mine.data<float>()[i] = static_cast<float>(i + peers.rank());
  }
  overwrite(mine, bucket.values);
  Stream compute(Device::kCuda);
  IpcExchange exchange(peers, compute, std::span(&bucket, 1), deadline);
  exchange.start({.values = bucket.values, .label = bucket.label})->wait();
  const Tensor sum = to_cpu(compute, bucket.values);
  for (int64_t i = 0; i < sum.numel(); ++i) {
    const int64_t want = ranks * i + ranks * (ranks - 1) / 2;
    if (sum.data<float>()[i] != static_cast<float>(want)) return false;
  }
  return true;
}

}  // namespace

std::string why_unavailable(Communicator& peers, std::chrono::milliseconds deadline) {
  const std::vector<std::string> devices = gather_texts(peers, cuda::device_properties().uuid);
  std::string unreachable = attempt(peers, [&] { check_reach(devices); });
  if (!unreachable.empty()) return unreachable;
  bool right = false;
  try {
    right = sums_right(peers, deadline);
  } catch (const EnvironmentError& refused) {  // on all ranks alike
    return refused.why();
  }
  return attempt(peers, [&] {
    if (!right) throw EnvironmentError("a sum over CUDA IPC came out wrong");
  });
}

}  // namespace lockstep::comm::ipc
