// Ranks that get their sums wrong.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "core/communicator.h"

namespace lockstep::bench {

// Another communicator whose results this rank spoils, and whose calls are counted.
class SpoiledCommunicator : public Communicator {
 public:
  explicit SpoiledCommunicator(Communicator& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Tensor allocate(const Shape& shape, Dtype dtype) override {
    return inner_.allocate(shape, dtype);
  }
  void barrier() override {
    ++barriers;
    inner_.barrier();
  }
  void broadcast(std::span<std::byte> bytes, int root) override { inner_.broadcast(bytes, root); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    inner_.all_gather(mine, all);
  }
  std::unique_ptr<Work> start_all_reduce(const AllReduce& what) override {
    ++all_reduces;
    Tensor values = what.values;
    auto work = inner_.start_all_reduce(what);
    work->wait();
    if (last_wrong && values.numel() > 0) values.span<float>().back() = 123456.5F;
    if (stale) swap_with_last(values);
    if (values.numel() > 0) firsts.push_back(values.span<float>().front());
    return work;
  }
  void all_reduce_sum(std::span<float> values) override { inner_.all_reduce_sum(values); }
  void all_reduce_sum(std::span<int64_t> values) override { inner_.all_reduce_sum(values); }

  bool last_wrong = false;  // the last element of each sum
  bool stale = false;       // each sum is that of the call before
  int barriers = 0;
  int all_reduces = 0;
  std::vector<float> firsts;  // elements of the sums

 private:
  void swap_with_last(Tensor& values) {
    last_.resize(values.span<float>().size());
    std::ranges::swap_ranges(values.span<float>(), last_);
  }

  Communicator& inner_;
  std::vector<float> last_;
};

}  // namespace lockstep::bench
