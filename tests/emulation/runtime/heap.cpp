#include "tests/emulation/runtime/heap.h"

#include <cstdlib>
#include <cstring>

#include "tests/emulation/access_check.h"

namespace lockstep::emulation {
namespace {

constexpr size_t kAlignment = 256;

}  // namespace

void* Heap::allocate(size_t bytes, Place place, int device) {
  void* memory = nullptr;  // of exactly that size, so that memory checkers see an access beyond it
  if (posix_memalign(&memory, kAlignment, bytes) != 0) return nullptr;
  std::memset(memory, 0xff, bytes);
  const bool pinned = place == Place::kPinned;
  permit(memory, bytes, pinned ? Memory::kPinned : Memory::kDevice);
  if (pinned) note_written(memory, bytes);  // the host writes unseen
  blocks_[static_cast<std::byte*>(memory)] = {bytes, place, device};
  return memory;
}

bool Heap::free(void* begin, Place place) {
  const auto found = blocks_.find(static_cast<std::byte*>(begin));
  if (found == blocks_.end() || found->second.place != place) return false;
  blocks_.erase(found);
  withdraw(begin);
  std::free(begin);
  return true;
}

const Heap::Block* Heap::find(const void* at) const {
  auto found = blocks_.upper_bound(static_cast<const std::byte*>(at));
  if (found == blocks_.begin()) return nullptr;
  --found;
  return at < found->first + found->second.bytes ? &found->second : nullptr;
}

std::optional<Place> Heap::place_of(const void* at, size_t bytes) const {
  const Block* const block = find(at);
  if (block == nullptr) return Place::kPageable;
  if (bytes > 0 && find(static_cast<const std::byte*>(at) + bytes - 1) != block) return {};
  return block->place;
}

size_t Heap::device_bytes(int device) const {
  size_t sum = 0;
  for (const auto& [begin, block] : blocks_) {
    if (block.place == Place::kDevice && block.device == device) sum += block.bytes;
  }
  return sum;
}

size_t Heap::pinned_bytes() const {
  size_t sum = 0;
  for (const auto& [begin, block] : blocks_) {
    if (block.place == Place::kPinned) sum += block.bytes;
  }
  return sum;
}

}  // namespace lockstep::emulation
