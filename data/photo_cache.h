// Decoded photos in memory, so that later epochs read no files.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "data/codecs/image.h"
#include "data/files.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

struct CachedPhoto {
  FileStamp stamp;
  ImageSize size;  // of the photo
  bool can_shrink = false;
  int shrink = 1;  // the factor by which `image` was shrunk
  Image image;     // the whole image
};

// Keeps photos until the budget is spent, and never evicts one: an epoch reads each photo once, so
// an evicted photo would be needed again before the one that replaced it. Thread safety: any
// thread.
class PhotoCache {
 public:
  // `budget`: bytes, which several caches may share.
  explicit PhotoCache(std::shared_ptr<std::atomic<int64_t>> budget) : budget_(std::move(budget)) {}

  // Returns null when photo i is not cached.
  std::shared_ptr<const CachedPhoto> find(int64_t i) const {
    const std::lock_guard lock(mutex_);
    const auto found = photos_.find(i);
    return found == photos_.end() ? nullptr : found->second;
  }
  bool fits(const ImageSize& size) const { return cost(size) <= budget_->load(); }
  // Caches photo i, unless it is cached already or the budget is spent.
  void store(int64_t i, CachedPhoto photo) {
    const int64_t bytes = cost({photo.image.region.height, photo.image.region.width});
    if (budget_->fetch_sub(bytes) >= bytes) {
      auto cached = std::make_shared<const CachedPhoto>(std::move(photo));
      const std::lock_guard lock(mutex_);
      if (photos_.try_emplace(i, std::move(cached)).second) return;
    }
    budget_->fetch_add(bytes);
  }

 private:
  static int64_t cost(const ImageSize& size) {
    constexpr int64_t kBookkeeping = 256;  // overhead of an entry, about
    return size.height * size.width * 3 + kBookkeeping;
  }

  const std::shared_ptr<std::atomic<int64_t>> budget_;
  mutable std::mutex mutex_;  // guards photos_
  std::unordered_map<int64_t, std::shared_ptr<const CachedPhoto>> photos_;
};

}  // namespace lockstep::data
#pragma GCC visibility pop
