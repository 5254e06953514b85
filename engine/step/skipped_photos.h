// The images that cannot be read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "core/communicator.h"
#include "data/loader.h"

namespace lockstep {

// The images that a run skips, over all ranks. A rank notes the images that its batches skipped
// when a step uses these batches, not when a loader thread meets them, and the ranks combine their
// notes where they communicate anyway. So at the same step, whatever their number, all ranks know
// the same images.
class SkippedPhotos {
 public:
  // `warn` is called once for each image, on rank 0.
  SkippedPhotos(int64_t dataset_size, std::function<void(const std::string&)> warn)
      : limit_(data::skip_limit(dataset_size)), warn_(std::move(warn)) {}

  void note(std::span<const data::SkippedImage> skipped);
  // The number of notes that other ranks do not know yet.
  int64_t noted() const { return static_cast<int64_t>(notes_.size()); }
  // A collective call. Errors: on all ranks, DataError when more are skipped than may be.
  void agree(Communicator& ranks);

 private:
  const int64_t limit_;
  const std::function<void(const std::string&)> warn_;
  std::map<int64_t, std::string> notes_;  // why, by index
  std::set<int64_t> known_;               // to all ranks
};

}  // namespace lockstep
