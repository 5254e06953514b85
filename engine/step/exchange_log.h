// Records the cost of a run's communication for run.json.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/gradient_reducer.h"
#include "core/communicator.h"
#include "core/timeline.h"
#include "engine/results/training_result.h"

namespace lockstep {

// Times the calls to the peers of batch norms: forwards every call and adds up the time that it
// takes. Its own traffic() is empty. The timeline may be null.
class TimedPeers final : public Communicator {
 public:
  explicit TimedPeers(Communicator& peers, Timeline* timeline = nullptr)
      : peers_(peers), timeline_(timeline) {}

  double seconds() const { return seconds_; }

  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }
  Tensor allocate(const Shape& shape, Dtype dtype) override {
    return peers_.allocate(shape, dtype);
  }
  void barrier() override {
    timed([&] { peers_.barrier(); });
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    timed([&] { peers_.broadcast(bytes, root); });
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    timed([&] { peers_.all_gather(mine, all); });
  }
  std::unique_ptr<Work> start_all_reduce(const AllReduce& what) override {
    return peers_.start_all_reduce(what);
  }
  void all_reduce_sum(std::span<float> values) override {
    timed([&] { peers_.all_reduce_sum(values); });
  }
  void all_reduce_sum(std::span<int64_t> values) override {
    timed([&] { peers_.all_reduce_sum(values); });
  }

 private:
  template <class Call>
  void timed(Call&& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const auto end = std::chrono::steady_clock::now();
    seconds_ += std::chrono::duration<double>(end - start).count();
    if (timeline_ == nullptr) return;
    timeline_->record({.name = kExchangeSpan, .detail = "batch norm", .begin = start, .end = end});
  }

  Communicator& peers_;
  Timeline* const timeline_;
  double seconds_ = 0;
};

// A rank's record of its steps.
class ExchangeLog {
 public:
  struct Step {
    comm::BucketTimes::Clock::time_point begin;
    RankSeconds seconds;
    const comm::ExchangeTimes& exchange;
    Traffic traffic;  // of this step
    int64_t images = 0;
  };

  void add(const Step& step);
  // A collective call. The result is the same on all ranks except for the buckets, which are this
  // rank's.
  ExchangeSummary summarize(Communicator& ranks) const;

 private:
  int64_t steps_ = 0;
  int64_t images_ = 0;
  ExchangeSummary::Rank sums_;  // of all steps but the first, once there are others
  std::vector<ExchangeSummary::BucketSeconds> buckets_;
};

}  // namespace lockstep
