#include "data/skipped_images.h"

#include <algorithm>
#include <utility>

namespace lockstep::data {

SkippedImages::SkippedImages(int64_t dataset_size, std::function<void(const std::string&)> warn)
    : limit_(static_cast<size_t>(
          std::min(std::max<int64_t>(10, dataset_size / 1000), dataset_size - 1))),
      warn_(std::move(warn)) {}

void SkippedImages::add(int64_t i, const UnreadableImage& error) {
  const std::lock_guard lock(mutex_);
  if (!images_.insert(i).second) return;
  if (warn_) warn_(fmt::format("skipped {}; the next image takes its place", error.why()));
  if (images_.size() <= limit_) return;
  throw DataError(fmt::format("more than {} images of the data set cannot be read", limit_),
                  "the last one is " + error.why(),
                  "check the disk and how the files came there; each was named above");
}

}  // namespace lockstep::data
