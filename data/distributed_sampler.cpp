#include "data/distributed_sampler.h"

#include <numeric>

#include <fmt/core.h>

#include "core/check.h"
#include "core/error.h"
#include "core/mt19937.h"

namespace lockstep::data {

int64_t samples_per_replica(const SamplerOptions& options) {
  constexpr int64_t kRound = 256;  // images
  if (options.repeats > 1) {
    const bool rounds = options.size >= kRound;
    const int64_t images =
        rounds ? options.size / kRound * kRound : options.size + options.replicas - 1;
    return images / options.replicas;
  }
  const int64_t rounding = options.drop_last ? 0 : options.replicas - 1;
  return (options.size + rounding) / options.replicas;
}

std::vector<int64_t> epoch_order(const SamplerOptions& options) {
  if (options.size > kMostImages) {
    throw DataError(fmt::format("a data set of {} images is too large", options.size),
                    fmt::format("the order of an epoch holds at most {}", kMostImages),
                    "a size() of at most that");
  }
  if (options.shuffle) {
    Mt19937 generator(options.seed + static_cast<uint64_t>(options.epoch));
    return generator.randperm(options.size);
  }
  std::vector<int64_t> order(static_cast<size_t>(options.size));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

std::vector<int64_t> distributed_sampler(const SamplerOptions& options, int64_t replica) {
  LS_CHECK(options.size >= 1 && replica >= 0 && replica < options.replicas,
           "[distributed_sampler] got {} images, replica {} of {}",
           options.size,
           replica,
           options.replicas);
  const std::vector<int64_t> order = epoch_order(options);
  std::vector<int64_t> mine(static_cast<size_t>(samples_per_replica(options)));
  for (size_t j = 0; j < mine.size(); ++j) {
    mine[j] = dealt_view(order, options, replica, static_cast<int64_t>(j));
  }
  return mine;
}

}  // namespace lockstep::data
