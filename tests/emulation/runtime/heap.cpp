#include "tests/emulation/runtime/heap.h"

#include <cstdlib>
#include <cstring>

#include "tests/emulation/access_check.h"

namespace lockstep::emulation {
namespace {

constexpr size_t kPage = 4096;

// Device memory uses whole pages, which can be shared with other processes. Under AddressSanitizer
// it has exactly the requested size, so that an access beyond it is detected; then only memory of
// whole pages can be shared.
size_t held_bytes(size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  return bytes;
#else
  return (bytes + kPage - 1) / kPage * kPage;
#endif
}

}  // namespace

void* Heap::allocate(size_t bytes, Place place, int device) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kPage, held_bytes(bytes)) != 0) return nullptr;
  std::memset(memory, 0xff, bytes);
  const bool pinned = place == Place::kPinned;
  permit(memory, bytes, pinned ? Memory::kPinned : Memory::kDevice);
  if (pinned) note_written(memory, bytes);  // the host's own writes are not observed
  blocks_[static_cast<std::byte*>(memory)] = {bytes, place, device};
  return memory;
}

bool Heap::free(void* begin, Place place) {
  const auto found = blocks_.find(static_cast<std::byte*>(begin));
  if (found == blocks_.end() || found->second.place != place || found->second.imports > 0)
    return false;
  blocks_.erase(found);
  withdraw(begin);
  std::free(begin);
  return true;
}

std::optional<PagesHandle> Heap::share(const void* at) {
  const std::span<const std::byte> bytes = range_of(at);
  if (bytes.empty()) return {};
  Block& block = blocks_.at(bytes.data());
  const bool whole = held_bytes(block.bytes) % kPage == 0;
  if (block.place != Place::kDevice || block.imports > 0 || !whole) return {};
  if (!block.pages) {
    auto* const begin = const_cast<std::byte*>(bytes.data());
    block.pages = SharedPages::replace(begin, held_bytes(block.bytes), block.device);
  }
  return block.pages ? std::optional(block.pages->handle()) : std::nullopt;
}

void* Heap::import(const PagesHandle& handle) {
  for (auto& [begin, block] : blocks_) {
    if (block.imports == 0 || block.pages->handle().process != handle.process ||
        block.pages->handle().identity != handle.identity)
      continue;
    ++block.imports;
    return block.pages->memory();
  }
  auto pages = SharedPages::open(handle);
  if (!pages) return nullptr;
  void* const memory = pages->memory();
  permit(memory, handle.bytes, Memory::kDevice);
  note_written(memory, handle.bytes);  // by the process that owns it
  blocks_[static_cast<std::byte*>(memory)] = {
      handle.bytes, Place::kDevice, handle.device, std::move(pages), 1};
  return memory;
}

bool Heap::close(void* begin) {
  const auto found = blocks_.find(static_cast<std::byte*>(begin));
  if (found == blocks_.end() || found->second.imports == 0) return false;
  if (--found->second.imports > 0) return true;
  withdraw(begin);
  blocks_.erase(found);
  return true;
}

std::span<const std::byte> Heap::range_of(const void* at) const {
  auto found = blocks_.upper_bound(static_cast<const std::byte*>(at));
  if (found == blocks_.begin()) return {};
  --found;
  return at < found->first + found->second.bytes ? std::span(found->first, found->second.bytes)
                                                 : std::span<const std::byte>();
}

const Heap::Block* Heap::find(const void* at) const {
  const std::span<const std::byte> bytes = range_of(at);
  return bytes.empty() ? nullptr : &blocks_.at(bytes.data());
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
    if (block.place == Place::kDevice && block.device == device && block.imports == 0)
      sum += taken_bytes(block.bytes);
  }
  return sum;
}

size_t Heap::taken_bytes(size_t bytes) {
  constexpr size_t kLarge = size_t{2} << 20;
  const size_t unit = bytes < kLarge ? 512 : kLarge;
  return (bytes + unit - 1) / unit * unit;
}

size_t Heap::pinned_bytes() const {
  size_t sum = 0;
  for (const auto& [begin, block] : blocks_) {
    if (block.place == Place::kPinned) sum += block.bytes;
  }
  return sum;
}

}  // namespace lockstep::emulation
