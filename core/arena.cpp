#include "core/arena.h"

#include <algorithm>
#include <iterator>

#include "core/check.h"
#include "core/error.h"

namespace lockstep {
namespace {

constexpr size_t kPageBytes = 4096;

}  // namespace

Arena::Arena(std::byte* begin, size_t bytes)
    : begin_(begin), bytes_(bytes), parts_{{0, {bytes, true}}} {}

void* Arena::allocate(size_t bytes) {
  if (bytes > bytes_) return nullptr;
  const size_t wanted = std::max(kPageBytes, (bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
  const auto fits = [&](const auto& part) {
    return part.second.free && part.second.bytes >= wanted;
  };
  const auto found = std::ranges::find_if(parts_, fits);
  if (found == parts_.end()) return nullptr;
  auto& [offset, part] = *found;
  if (part.bytes > wanted) parts_[offset + wanted] = {part.bytes - wanted, true};
  part = {wanted, false};
  touched_ = std::max(touched_, offset + wanted);
  return begin_ + offset;
}

void Arena::free(void* part) {
  auto found = parts_.find(static_cast<size_t>(static_cast<std::byte*>(part) - begin_));
  LS_CHECK(found != parts_.end() && !found->second.free, "no part of the arena begins here");
  found->second.free = true;
  const auto next = std::next(found);
  if (next != parts_.end() && next->second.free) {
    found->second.bytes += next->second.bytes;
    parts_.erase(next);
  }
  if (found == parts_.begin()) return;
  const auto previous = std::prev(found);
  if (!previous->second.free) return;
  previous->second.bytes += found->second.bytes;
  parts_.erase(found);
}

bool Arena::holds(const void* part) const {
  return part >= begin_ && part < begin_ + bytes_;
}

}  // namespace lockstep
