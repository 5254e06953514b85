#include "core/allocator.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <new>

#include <fmt/ranges.h>
#include <sys/mman.h>

#include "core/check.h"
#include "core/error.h"
#include "core/round_up.h"

namespace lockstep {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kPage = 4096;
constexpr double kMiB = 1 << 20;
constexpr size_t kHugePage = size_t{2} << 20;

class SystemMemory : public MemorySource {
 public:
  void* allocate(size_t bytes) override {
    const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
    void* block = nullptr;
    if (posix_memalign(&block, alignment, bytes) != 0) return nullptr;
    if (bytes >= kHugePage) madvise(block, bytes, MADV_HUGEPAGE);  // fewer page faults; a hint only
    return block;
  }
  void free(void* block) override { std::free(block); }
  // An arena costs only address space until its pages are touched. AddressSanitizer needs separate
  // blocks to detect overruns.
  size_t arena_bytes() const override {
#if defined(__SANITIZE_ADDRESS__)
    return 0;
#else
    return size_t{1} << 30;
#endif
  }
  std::string out_of_memory_text() const override { return "out of memory"; }
};

size_t in_units(size_t bytes, size_t unit) {
  return std::max(unit, round_up(bytes, unit));
}

}  // namespace

Arena::Arena(std::byte* begin, size_t bytes, size_t unit)
    : begin_(begin), bytes_(bytes), unit_(unit), parts_{{0, {bytes, true}}} {}

void* Arena::allocate(size_t bytes) {
  if (bytes > bytes_) return nullptr;
  const size_t wanted = in_units(bytes, unit_);
  auto found = parts_.end();
  for (auto at = parts_.begin(); at != parts_.end(); ++at) {
    if (!at->second.free || at->second.bytes < wanted) continue;
    if (found == parts_.end() || at->second.bytes < found->second.bytes) found = at;
  }
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

size_t ArenaRecord::allocate(size_t bytes) {
  const size_t number = sizes_.size();
  // Room for both events, since destructors call free().
  if (events_.capacity() < 2 * (number + 1)) events_.reserve(4 * (number + 1));
  sizes_.push_back(in_units(bytes, unit_));
  events_.push_back({number, sizes_.back()});
  bytes_in_use_ += sizes_.back();
  peak_ = std::max(peak_, bytes_in_use_);
  return number;
}

void ArenaRecord::free(size_t number) {
  events_.push_back({number, 0});
  bytes_in_use_ -= sizes_.at(number);
}

size_t ArenaRecord::arena_bytes() const {
  const size_t step = in_units(peak_ / 64, unit_);
  size_t bytes = peak_;
  while (!fit(bytes)) bytes += step;
  return bytes;
}

bool ArenaRecord::fit(size_t arena_bytes) const {
  // The address is never accessed: an Arena's bookkeeping lies outside its memory.
  Arena arena(std::bit_cast<std::byte*>(uintptr_t{1} << 40), arena_bytes, unit_);
  std::vector<void*> parts(sizes_.size());
  for (const auto& [number, bytes] : events_) {
    if (bytes == 0) {
      arena.free(parts[number]);
    } else {
      parts[number] = arena.allocate(bytes);
      if (parts[number] == nullptr) return false;
    }
  }
  return true;
}

CachingAllocator::CachingAllocator(MemorySource& source, const Options& options)
    : source_(source), options_(options) {
  const std::lock_guard lock(source_.users_mutex_);
  source_.users_.push_back(this);
}

CachingAllocator::~CachingAllocator() {
  {
    const std::lock_guard lock(source_.users_mutex_);
    std::erase(source_.users_, this);
  }
  release_cache();
  for (const Arena& arena : arenas_) source_.free(arena.begin());
}

size_t CachingAllocator::rounded(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return bytes;  // cannot be allocated; rounding could wrap around
  if (bytes >= kLargeBlock) return round_up(bytes, kPage);
  if (bytes <= kAlignment * 8) return std::max(kAlignment, round_up(bytes, kAlignment));
  return round_up(bytes, std::bit_floor(bytes - 1) / 8);
}

size_t CachingAllocator::block_size(size_t bytes) const {
  const bool cuts_all = options_.smallest_in_arenas == 0 && bytes <= SIZE_MAX / 2;
  return cuts_all ? in_units(bytes, options_.arena_unit) : rounded(bytes);
}

void* CachingAllocator::allocate(size_t bytes) {
  const size_t size = block_size(bytes);
  void* block = obtain(size, Arenas::kUsual);
  if (block == nullptr && source_.can_free()) release_caches_of(source_);
  if (block == nullptr) block = obtain(size, Arenas::kSmaller);
  if (block == nullptr) {
    throw EnvironmentError(
        fmt::format("{}: {} bytes more are needed", source_.out_of_memory_text(), size),
        fmt::format("in use: {}", usage_text(source_)),
        "a smaller batch or fewer ranks on this host",
        Remedy::kSmallerBatch);
  }
  return block;
}

void* CachingAllocator::obtain(size_t size, Arenas arenas) try {
  const std::lock_guard lock(mutex_);
  const bool cuts = size >= options_.smallest_in_arenas && arena_bytes() > 0;
  void* block = cuts ? from_arenas(size, arenas) : from_cache(size);
  if (block == nullptr && !cuts) {
    if (options_.keep) reserve_places(size);
    block = source_.allocate(size);
    if (block != nullptr) ++stats_.system_allocations;
    if (block != nullptr && options_.keep) ++cache_.at(size).count;
  }
  if (block == nullptr) return nullptr;
  stats_.bytes_in_use += size;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  return block;
} catch (const std::bad_alloc&) {  // of this object's own lists
  return nullptr;
}

size_t CachingAllocator::arena_bytes() const {
  return options_.arena_bytes.value_or(source_.arena_bytes());
}

void* CachingAllocator::from_arenas(size_t size, Arenas arenas) {
  for (Arena& arena : arenas_) {
    if (void* block = cut(arena, size); block != nullptr) return block;
  }
  if (size > SIZE_MAX / 2) return nullptr;
  const bool first = arenas_.empty() && options_.first_arena_bytes > 0;
  const size_t usual = first ? options_.first_arena_bytes : arena_bytes();
  const size_t unit = options_.arena_unit;
  const size_t least = in_units(size, unit);
  for (size_t bytes = std::max(usual, least);; bytes = std::max(bytes / 2, least)) {
    bytes = bytes / unit * unit;
    auto* begin = static_cast<std::byte*>(source_.allocate(bytes));
    if (begin != nullptr) return cut(arenas_.emplace_back(begin, bytes, unit), size);
    if (bytes == least || arenas == Arenas::kUsual) return nullptr;
  }
}

void* CachingAllocator::cut(Arena& arena, size_t size) {
  const size_t touched = arena.touched_bytes();
  void* block = arena.allocate(size);
  if (block == nullptr) return nullptr;
  const size_t fresh = arena.touched_bytes() - touched;
  if (fresh > 0) ++stats_.system_allocations;
  stats_.bytes_cached = stats_.bytes_cached + fresh - size;
  return block;
}

void* CachingAllocator::from_cache(size_t size) {
  const auto found = cache_.find(size);
  if (found == cache_.end() || found->second.free.empty()) return nullptr;
  void* block = found->second.free.back();
  found->second.free.pop_back();
  stats_.bytes_cached -= size;
  return block;
}

void CachingAllocator::reserve_places(size_t size) {
  const Blocks& blocks = cache_[size];
  const size_t places = blocks.free.capacity();
  if (blocks.count == places) cache_[size].free.reserve(std::max<size_t>(1, 2 * places));
}

void CachingAllocator::free(void* block, size_t bytes) {
  const size_t size = block_size(bytes);
  const std::lock_guard lock(mutex_);
  stats_.bytes_in_use -= size;
  for (Arena& arena : arenas_) {
    if (!arena.holds(block)) continue;
    stats_.bytes_cached += size;
    return arena.free(block);
  }
  if (!options_.keep) return source_.free(block);
  cache_.at(size).free.push_back(block);
  stats_.bytes_cached += size;
}

AllocatorStats CachingAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void CachingAllocator::hold_arenas() {
  const std::lock_guard lock(mutex_);
  held_arenas_ = arenas_.size();
}

void CachingAllocator::release_cache() {
  const std::lock_guard lock(mutex_);
  for (auto& [size, blocks] : cache_) {
    for (void* block : blocks.free) source_.free(block);
    stats_.bytes_cached -= size * blocks.free.size();
    blocks.count -= blocks.free.size();
    blocks.free.clear();
  }
  std::erase_if(cache_, [](const auto& blocks) { return blocks.second.count == 0; });
  for (size_t i = arenas_.size(); i-- > held_arenas_;) {
    if (!arenas_[i].is_free()) continue;
    source_.free(arenas_[i].begin());
    stats_.bytes_cached -= arenas_[i].touched_bytes();
    arenas_.erase(arenas_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void CachingAllocator::release_caches_of(MemorySource& source) {
  const std::lock_guard lock(source.users_mutex_);
  for (CachingAllocator* user : source.users_) user->release_cache();
}

// "12.5 MiB of weights, 3.0 MiB of activations".
std::string CachingAllocator::usage_text(MemorySource& source) {
  const std::lock_guard lock(source.users_mutex_);
  std::vector<std::string> parts;
  for (const CachingAllocator* user : source.users_) {
    const AllocatorStats stats = user->stats();
    if (stats.bytes_in_use == 0) continue;
    parts.push_back(fmt::format(
        "{:.1f} MiB of {}", static_cast<double>(stats.bytes_in_use) / kMiB, user->options_.holds));
  }
  return parts.empty() ? "no bytes of this process" : fmt::format("{}", fmt::join(parts, ", "));
}

MemorySource& system_memory() {
  static SystemMemory& memory = *new SystemMemory;  // outlives every static tensor
  return memory;
}

CachingAllocator& cpu_allocator() {
  static CachingAllocator& allocator = *new CachingAllocator(system_memory());
  return allocator;
}

CachingAllocator& cpu_workspaces() {
  static CachingAllocator& allocator = *new CachingAllocator(
      system_memory(), {.holds = "workspace", .keep = false, .arena_bytes = 0});
  return allocator;
}

}  // namespace lockstep
