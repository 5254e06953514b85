#include "tests/emulation/access_check.h"

#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <link.h>

#include "tests/emulation/engine.h"
#include "tests/emulation/place.h"

extern "C" {
extern char __start_emulated_constant[] __attribute__((weak));
extern char __stop_emulated_constant[] __attribute__((weak));
}

namespace lockstep::emulation {
namespace {

// The last access to a byte, packed into 64 bits. 0: never accessed. Launch 0 stands for any access
// too old to matter.
struct Stamp {
  uint64_t atomic : 1, clock : 13, barriers : 14, thread : 10, block : 16, launch : 10;

  bool is_set() const { return __builtin_bit_cast(uint64_t, *this) != 0; }
  bool operator==(const Stamp& other) const {
    return __builtin_bit_cast(uint64_t, *this) == __builtin_bit_cast(uint64_t, other);
  }
};
static_assert(sizeof(Stamp) == 8);
constexpr uint64_t kLastLaunch = 1023;

struct Cell {
  Stamp writer, reader, other_reader;
};

constexpr uintptr_t kPage = 4096;
constexpr uintptr_t kNearBytes = 256;  // an access this close to a region was probably meant for it
enum class PageKind : uint8_t { kUnknown, kIgnored, kStatic, kReadOnly, kRegions };
struct Page {
  PageKind kind = PageKind::kUnknown;
  std::unique_ptr<std::array<Cell, kPage>> cells;
};

struct Region {
  uintptr_t end;
  Memory kind;
  bool freed;
};

struct Range {
  uintptr_t begin, end;
  bool writable;
  bool holds(uintptr_t at) const { return at >= begin && at < end; }
};

const ThreadClock* current = nullptr;

class Checker {
 public:
  Checker();

  void access(uintptr_t at, unsigned bytes, bool writes, bool atomic, const void* caller);
  void permit(uintptr_t begin, size_t bytes, Memory kind);
  void withdraw(uintptr_t begin);
  void ignore(uintptr_t begin, size_t bytes);
  void note_written(uintptr_t begin, size_t bytes);
  void begin_grid();
  void set_block(unsigned block) { block_ = block; }
  std::string take_reports();

 private:
  Page& page_of(uintptr_t at);
  Cell& cell_of(uintptr_t at);
  PageKind classify(uintptr_t at) const;
  const Region* region_of(uintptr_t at) const;
  bool near_region(uintptr_t at) const;
  Stamp stamp(bool atomic) const;
  bool conflict(Stamp earlier, Stamp now) const;
  void check_cell(Cell& cell, Stamp now, bool shared, bool writes, const char*& problem);
  static std::string text_of(std::string_view what,
                             uintptr_t at,
                             unsigned bytes,
                             const void* caller);
  void report(std::string_view what, uintptr_t at, unsigned bytes, const void* caller);
  // Reports an access that could crash the host or corrupt its memory. The access is not carried
  // out.
  [[noreturn]] static void refuse(std::string_view what,
                                  uintptr_t at,
                                  unsigned bytes,
                                  const void* caller);

  std::unordered_map<uintptr_t, Page> pages_;
  struct {
    uintptr_t number;
    Page* page;
  } recent_[512] = {};
  std::map<uintptr_t, Region> regions_;
  std::vector<Range> segments_, ignored_;
  unsigned block_ = 0;
  uint64_t launch_ = 1;
  std::set<std::pair<const void*, std::string_view>> seen_;
  std::string reports_;
};

Checker& checker() {
  static Checker& checker = *new Checker;
  return checker;
}

Checker::Checker() {
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* self) {
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& header = object->dlpi_phdr[i];
          if (header.p_type != PT_LOAD) continue;
          const uintptr_t begin = object->dlpi_addr + header.p_vaddr;
          static_cast<Checker*>(self)->segments_.push_back(
              {begin, begin + header.p_memsz, (header.p_flags & PF_W) != 0});
        }
        return 0;
      },
      this);
  const auto begin = reinterpret_cast<uintptr_t>(&view);
  ignored_.push_back({begin, begin + sizeof(view), true});
}

PageKind Checker::classify(uintptr_t at) const {
  const uintptr_t begin = at / kPage * kPage;
  for (const Range& range : ignored_) {
    if (begin >= range.begin && begin + kPage <= range.end) return PageKind::kIgnored;
  }
  for (const Range& segment : segments_) {
    if (begin + kPage > segment.begin && begin < segment.end)
      return segment.writable ? PageKind::kStatic : PageKind::kReadOnly;
  }
  return PageKind::kRegions;
}

Page& Checker::page_of(uintptr_t at) {
  const uintptr_t number = at / kPage;
  auto& slot = recent_[number % 512];
  if (slot.page != nullptr && slot.number == number) return *slot.page;
  Page& page = pages_[number];
  if (page.kind == PageKind::kUnknown) page.kind = classify(at);
  slot = {number, &page};
  return page;
}

Cell& Checker::cell_of(uintptr_t at) {
  Page& page = page_of(at);
  if (!page.cells) page.cells = std::make_unique<std::array<Cell, kPage>>();
  return (*page.cells)[at % kPage];
}

const Region* Checker::region_of(uintptr_t at) const {
  const auto next = regions_.upper_bound(at);
  if (next == regions_.begin() || std::prev(next)->second.end <= at) return nullptr;
  return &std::prev(next)->second;
}

bool Checker::near_region(uintptr_t at) const {
  const auto next = regions_.upper_bound(at);
  return (next != regions_.end() && at + kNearBytes >= next->first) ||
         (next != regions_.begin() && at < std::prev(next)->second.end + kNearBytes);
}

Stamp Checker::stamp(bool atomic) const {
  Stamp stamp{};
  stamp.atomic = atomic ? 1 : 0;
  stamp.clock = current->lanes[current->thread % 32] & 0x1fffU;
  stamp.barriers = current->barriers & 0x3fffU;
  stamp.thread = current->thread & 0x3ffU;
  stamp.block = block_ & 0xffffU;
  stamp.launch = launch_ & 0x3ffU;
  return stamp;
}

// Whether nothing orders the two accesses. Requires: at least one of them writes.
bool Checker::conflict(Stamp earlier, Stamp now) const {
  if (!earlier.is_set() || earlier.launch != now.launch) return false;
  if (earlier.atomic != 0 && now.atomic != 0) return false;
  if (earlier.block != now.block) return true;
  if (earlier.thread == now.thread || earlier.barriers != now.barriers) return false;
  if (earlier.thread / 32 != now.thread / 32) return true;
  return current->lanes[earlier.thread % 32] < earlier.clock;  // no __syncwarp between them
}

void Checker::check_cell(Cell& cell, Stamp now, bool shared, bool writes, const char*& problem) {
  if (shared && (cell.writer.launch != now.launch || cell.writer.block != now.block)) cell = {};
  if (conflict(cell.writer, now))
    problem = writes ? "race of two writes" : "race: read after write";
  if ((!writes || now.atomic != 0) && !cell.writer.is_set())
    problem = shared ? "read of unwritten shared memory" : "read of unwritten device memory";
  if (writes) {
    if (conflict(cell.reader, now) || conflict(cell.other_reader, now))
      problem = "race: write after read";
    cell.writer = now;
    return;
  }
  const bool outdated = cell.reader.launch != now.launch ||
                        (cell.reader.block == now.block && (cell.reader.thread == now.thread ||
                                                            cell.reader.barriers != now.barriers));
  (!cell.reader.is_set() || outdated ? cell.reader : cell.other_reader) = now;
}

void Checker::access(uintptr_t at, unsigned bytes, bool writes, bool atomic, const void* caller) {
  bool shared = false;
  switch (page_of(at).kind) {
    case PageKind::kIgnored:
    case PageKind::kUnknown:
      return;
    case PageKind::kReadOnly:
      if (writes) refuse("write to read-only memory", at, bytes, caller);
      return;
    case PageKind::kStatic: {
      for (const Range& range : ignored_) {
        if (range.holds(at)) return;
      }
      const char* const address = reinterpret_cast<const char*>(at);
      if (address >= __start_emulated_constant && address < __stop_emulated_constant) {
        if (writes) refuse("write to __constant__ memory", at, bytes, caller);
        return;
      }
      shared = true;
      break;
    }
    case PageKind::kRegions: {
      const Region* const region = region_of(at);
      if (region == nullptr ? near_region(at) : at + bytes > region->end)
        refuse("access out of bounds", at, bytes, caller);
      if (region == nullptr) refuse("host memory used by a kernel", at, bytes, caller);
      if (region->freed) refuse("freed device memory used", at, bytes, caller);
      if (region->kind == Memory::kArguments) return;
      shared = region->kind == Memory::kShared;
      break;
    }
  }
  if (at % bytes != 0) refuse("misaligned access", at, bytes, caller);
  const Stamp now = stamp(atomic);
  const char* problem = nullptr;
  for (unsigned i = 0; i < bytes; ++i) {
    Cell& cell = cell_of(at + i);
    if (cell.writer == now && (writes || cell.reader == now)) continue;
    check_cell(cell, now, shared, writes, problem);
  }
  if (problem != nullptr) report(problem, at, bytes, caller);
}

std::string Checker::text_of(std::string_view what,
                             uintptr_t at,
                             unsigned bytes,
                             const void* caller) {
  return fmt::format("{}: {} bytes at {:#x}, {}, {}",
                     what,
                     bytes,
                     at,
                     thread_text(view.block, view.thread),
                     place_of(caller));
}

void Checker::report(std::string_view what, uintptr_t at, unsigned bytes, const void* caller) {
  if (!seen_.insert({caller, what}).second || seen_.size() > 20) return;
  reports_ += text_of(what, at, bytes, caller) + "\n";
}

void Checker::refuse(std::string_view what, uintptr_t at, unsigned bytes, const void* caller) {
  current = nullptr;
  give_up(text_of(what, at, bytes, caller));
}

void Checker::permit(uintptr_t begin, size_t bytes, Memory kind) {
  auto next = regions_.lower_bound(begin);
  while (next != regions_.end() && next->first < begin + bytes) next = regions_.erase(next);
  regions_[begin] = {begin + bytes, kind, false};
  for (uintptr_t at = begin; at < begin + bytes; at = (at / kPage + 1) * kPage) {
    Page& page = page_of(at);
    if (!page.cells) continue;
    const uintptr_t end = std::min(begin + bytes, (at / kPage + 1) * kPage);
    for (uintptr_t byte = at; byte < end; ++byte) (*page.cells)[byte % kPage] = {};
  }
}

void Checker::withdraw(uintptr_t begin) {
  const auto found = regions_.find(begin);
  if (found == regions_.end()) return;
  if (found->second.kind == Memory::kDevice) {
    found->second.freed = true;
  } else {
    regions_.erase(found);
  }
}

void Checker::ignore(uintptr_t begin, size_t bytes) {
  ignored_.push_back({begin, begin + bytes, true});
  for (uintptr_t at = begin; at < begin + bytes; at += kPage) page_of(at).kind = PageKind::kIgnored;
}

void Checker::note_written(uintptr_t begin, size_t bytes) {
  Stamp earlier{};
  earlier.launch = launch_ & 0x3ffU;
  earlier.block = 0xffff;
  for (uintptr_t at = begin; at < begin + bytes; ++at) cell_of(at) = {earlier, {}, {}};
}

void Checker::begin_grid() {
  if (++launch_ <= kLastLaunch) return;
  launch_ = 1;
  Stamp past{};
  past.clock = 1;
  for (auto& [number, page] : pages_) {
    if (!page.cells) continue;
    for (Cell& cell : *page.cells) cell = {cell.writer.is_set() ? past : Stamp{}, {}, {}};
  }
}

std::string Checker::take_reports() {
  seen_.clear();
  return std::exchange(reports_, {});
}

}  // namespace

void permit(const void* begin, size_t bytes, Memory kind) {
  checker().permit(reinterpret_cast<uintptr_t>(begin), bytes, kind);
}
void withdraw(const void* begin) {
  checker().withdraw(reinterpret_cast<uintptr_t>(begin));
}
void ignore_accesses(const void* begin, size_t bytes) {
  checker().ignore(reinterpret_cast<uintptr_t>(begin), bytes);
}
void note_written(const void* begin, size_t bytes) {
  checker().note_written(reinterpret_cast<uintptr_t>(begin), bytes);
}
bool watches_accesses() {
  return true;
}
void begin_grid() {
  checker().begin_grid();
}
void set_thread(unsigned block, const ThreadClock* clock) {
  current = clock;
  checker().set_block(block);
}
void join_lanes(ThreadClock* first, unsigned mask) {
  uint32_t joined[32] = {};
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    for (unsigned i = 0; i < 32; ++i) joined[i] = std::max(joined[i], first[lane].lanes[i]);
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    std::memcpy(first[lane].lanes, joined, sizeof(joined));
    ++first[lane].lanes[lane];
  }
}
std::string take_reports() {
  return checker().take_reports();
}
void note_atomic(const void* at, unsigned bytes, const void* caller) {
  if (current == nullptr) return;
  checker().access(reinterpret_cast<uintptr_t>(at), bytes, true, true, caller);
}

// An access by instrumented code: a kernel, or host code in the same file.
void note_access(const void* at, unsigned bytes, bool writes, const void* caller) {
  if (current == nullptr) return;
  checker().access(reinterpret_cast<uintptr_t>(at), bytes, writes, false, caller);
}

}  // namespace lockstep::emulation
