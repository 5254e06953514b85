// Images that cannot be read: others take their places, up to a limit.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "data/codecs/decode_image.h"

namespace lockstep::data {

// Thread safety: all functions may be called from any thread.
class SkippedImages {
 public:
  // `warn` hears of each image once. The limit is a thousandth of the data set, or ten.
  SkippedImages(int64_t dataset_size, std::function<void(const std::string&)> warn);

  // Image i of the data set could not be read. Errors: DataError above the limit.
  void add(int64_t i, const UnreadableImage& error);

 private:
  const size_t limit_;
  const std::function<void(const std::string&)> warn_;
  std::mutex mutex_;  // guards images_ and calls of warn_
  std::set<int64_t> images_;
};

}  // namespace lockstep::data
