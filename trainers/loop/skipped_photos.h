// Images that a run skips, over all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>

#include "core/communicator.h"
#include "data/loader.h"

namespace lockstep::trainers {

// A rank notes what its batches skipped when a step uses them, not when a thread met it, and ranks
// put their notes together where they meet anyway: at the same step, whatever their number, all
// know the same images.
class SkippedPhotos {
 public:
  // `warn` hears of each image once, on rank 0.
  SkippedPhotos(int64_t dataset_size, std::function<void(const std::string&)> warn)
      : limit_(data::skip_limit(dataset_size)), warn_(std::move(warn)) {}

  void note(std::span<const data::SkippedImage> skipped);
  // Not yet known to other ranks.
  int64_t noted() const { return static_cast<int64_t>(notes_.size()); }
  // A collective call. Errors: on all ranks, DataError when more are skipped than may be.
  void agree(Communicator& ranks);

 private:
  const int64_t limit_;
  const std::function<void(const std::string&)> warn_;
  std::map<int64_t, std::string> notes_;  // why, by index
  std::set<int64_t> known_;               // to all ranks
};

}  // namespace lockstep::trainers
