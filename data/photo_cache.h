// Decoded photos in memory, so that later epochs read no files.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "data/codecs/image.h"
#include "data/photo_file.h"

namespace lockstep::data {

struct KeptPhoto {
  FileStamp stamp;
  ImageSize size;  // of the photo
  bool can_shrink = false;
  int shrink = 1;  // `image` has been shrunk by it
  Image image;     // all of it
};

// First come, until the room is full: an epoch wants each photo once, so an evicted photo would be
// missed before the one that replaced it. Thread safety: any thread.
class PhotoCache {
 public:
  // `room`: bytes, which several caches may share.
  explicit PhotoCache(std::shared_ptr<std::atomic<int64_t>> room) : room_(std::move(room)) {}

  // Null when photo i is not kept.
  std::shared_ptr<const KeptPhoto> find(int64_t i) const;
  bool has_room(const ImageSize& size) const { return cost(size) <= room_->load(); }
  // Unless one of that number is kept, or the room has run out.
  void keep(int64_t i, KeptPhoto photo);

 private:
  static int64_t cost(const ImageSize& size);

  const std::shared_ptr<std::atomic<int64_t>> room_;
  mutable std::mutex mutex_;  // guards photos_
  std::unordered_map<int64_t, std::shared_ptr<const KeptPhoto>> photos_;
};

}  // namespace lockstep::data
