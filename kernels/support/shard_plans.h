// Plans of ops that make one library call per shard.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "core/shards.h"
#include "core/stream.h"

namespace lockstep::kernels {

// Serializes the making of plans in the process: ranks that are threads share the library's caches,
// whose locks ThreadSanitizer cannot see.
inline std::mutex plan_mutex;

// The plans of one op call: one for each distinct number of images among its shards.
template <class P>
class ShardPlans {
 public:
  // Finds or makes the plan of every non-empty shard; make(images) returns a std::unique_ptr<P>.
  // key.values[0] is replaced by the number of images.
  template <class Make>
  ShardPlans(Stream& stream, const Shards& shards, PlanKey key, Make&& make) {
    for (int64_t k = 0; k < shards.local(); ++k) {
      const int64_t images = shards.count(k);
      if (images == 0 || find(images) < size()) continue;
      key.values[0] = images;
      plans_.push_back({images, &stream.plan<P>(key, [&] {
                          const std::lock_guard lock(plan_mutex);
                          return make(images);
                        })});
    }
  }

  size_t size() const { return plans_.size(); }
  const P& operator[](size_t i) const { return *plans_[i].plan; }
  // Index of the plan for a shard of `images`; size() when no shard has as many.
  size_t find(int64_t images) const {
    size_t i = 0;
    while (i < size() && plans_[i].images != images) ++i;
    return i;
  }
  // The largest measure(plan); 0 without plans.
  template <class Measure>
  size_t largest(Measure&& measure) const {
    size_t most = 0;
    for (const Entry& entry : plans_) most = std::max(most, measure(*entry.plan));
    return most;
  }

 private:
  struct Entry {
    int64_t images;
    P* plan;
  };
  std::vector<Entry> plans_;
};

inline size_t row_bytes(const Tensor& batch) {
  return static_cast<size_t>(batch.shape().stride0()) * size_of(batch.dtype());
}
// First row of local shard k in a batch tensor.
inline const std::byte* shard_rows(const Tensor& batch, const Shards& shards, int64_t k) {
  return batch.bytes() + row_bytes(batch) * static_cast<size_t>(shards.begin(k));
}
inline std::byte* shard_rows(Tensor& batch, const Shards& shards, int64_t k) {
  return batch.bytes() + row_bytes(batch) * static_cast<size_t>(shards.begin(k));
}

// Local shard k's row of a parameter's gradient; null when there is no such parameter.
inline float* shard_leaf(Tensor& grad, int64_t k) {
  return grad.defined() ? grad.data<float>() + k * grad.shape().stride0() : nullptr;
}
inline void zero_leaf(Tensor& grad, int64_t k) {
  if (grad.defined()) std::fill_n(shard_leaf(grad, k), grad.shape().stride0(), 0.0F);
}

}  // namespace lockstep::kernels
