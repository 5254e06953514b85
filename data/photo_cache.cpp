#include "data/photo_cache.h"

#include <utility>

namespace lockstep::data {

int64_t PhotoCache::cost(const ImageSize& size) {
  constexpr int64_t kBookkeeping = 256;  // of an entry, about
  return size.height * size.width * 3 + kBookkeeping;
}

std::shared_ptr<const KeptPhoto> PhotoCache::find(int64_t i) const {
  const std::lock_guard lock(mutex_);
  const auto found = photos_.find(i);
  return found == photos_.end() ? nullptr : found->second;
}

void PhotoCache::keep(int64_t i, KeptPhoto photo) {
  const int64_t bytes = cost({photo.image.region.height, photo.image.region.width});
  if (room_->fetch_sub(bytes) >= bytes) {
    auto kept = std::make_shared<const KeptPhoto>(std::move(photo));
    const std::lock_guard lock(mutex_);
    if (photos_.try_emplace(i, std::move(kept)).second) return;
  }
  room_->fetch_add(bytes);
}

}  // namespace lockstep::data
