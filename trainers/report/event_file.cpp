#include "trainers/report/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

#include "core/error.h"
#include "core/input_file.h"
#include "trainers/report/event_values.h"
#include "trainers/report/protobuf.h"
#include "trainers/report/rank_place.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;
namespace pb = protobuf;

constexpr std::string_view kNamePrefix = "events.out.tfevents.";

template <class T>
T read(std::string_view bytes) {
  std::array<char, sizeof(T)> number{};
  std::ranges::copy_n(bytes.begin(), number.size(), number.begin());
  return std::bit_cast<T>(number);
}

// Fields of tensorflow.Event and what it holds.
constexpr uint64_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;

std::string event_at(std::chrono::system_clock::time_point time) {
  const std::chrono::duration<double> seconds = time.time_since_epoch();
  return pb::real(kWallTime, seconds.count());
}

std::string first_event() {
  return event_at(std::chrono::system_clock::now()) + pb::bytes(kFileVersion, "brain.Event:2");
}

std::string event_of(int64_t step, std::span<const std::string> values) {
  constexpr uint64_t kValue = 1;
  std::string summary;
  for (const std::string& value : values) {
    if (!value.empty()) summary += pb::bytes(kValue, value);
  }
  return event_at(std::chrono::system_clock::now()) + pb::whole(kStep, step) +
         pb::bytes(kSummary, summary);
}

constexpr size_t kHead = sizeof(uint64_t) + sizeof(uint32_t), kTail = sizeof(uint32_t);

uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

std::string record(std::string_view event) {
  const std::string size = pb::bytes_of(uint64_t{event.size()});
  return size + pb::bytes_of(masked_crc(size)) + std::string(event) +
         pb::bytes_of(masked_crc(event));
}

// Reads the event at the beginning of `file`; nothing where it is damaged or unfinished.
std::optional<std::string_view> first_record(std::string_view file) {
  if (file.size() < kHead + kTail) return std::nullopt;
  const auto size = read<uint64_t>(file);
  if (read<uint32_t>(file.substr(sizeof(size))) != masked_crc(file.substr(0, sizeof(size)))) {
    return std::nullopt;
  }
  if (size > file.size() - kHead - kTail) return std::nullopt;
  const std::string_view event = file.substr(kHead, size);
  if (read<uint32_t>(file.substr(kHead + size)) != masked_crc(event)) return std::nullopt;
  return event;
}

// An event's step, 0 where it names none. Events are our own: the wall time comes first, the step
// after it. Nothing where this is not so.
std::optional<int64_t> step_of(std::string_view event) {
  constexpr size_t kTime = 1 + sizeof(double);
  if (event.size() <= kTime || event.substr(0, 1) != pb::key(kWallTime, pb::Wire::kFixed64)) {
    return std::nullopt;
  }
  event.remove_prefix(kTime);
  if (event.substr(0, 1) != pb::key(kStep, pb::Wire::kVarint)) return 0;
  uint64_t step = 0;
  for (size_t i = 1, shift = 0; i < event.size() && shift < 64; ++i, shift += 7) {
    const auto byte = static_cast<uint8_t>(event[i]);
    step |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return static_cast<int64_t>(step);
  }
  return std::nullopt;
}

bool has_tag(std::string_view event, std::string_view tag) {
  constexpr uint64_t kTag = 1;
  return event.find(pb::bytes(kTag, tag)) != std::string_view::npos;
}

// Returns the beginning of `file` with sound events of steps up to `last`, without a session's end
// and without values with the tag `again` at that step.
std::string_view up_to(std::string_view file, int64_t last, std::string_view again) {
  size_t kept = 0;
  while (const auto event = first_record(file.substr(kept))) {
    const std::optional<int64_t> step = step_of(*event);
    if (!step || *step > last || has_tag(*event, kSessionEndTag)) break;
    if (*step == last && !again.empty() && has_tag(*event, again)) break;
    kept += kHead + event->size() + kTail;
  }
  return file.substr(0, kept);
}

constexpr uint64_t kMostKept = uint64_t{1} << 30;  // of a file that is held in memory

fs::path new_name(const fs::path& folder) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const RankPlace place = this_place();
  return folder / fmt::format("{}{}.{}.{}.0",
                              kNamePrefix,
                              std::chrono::duration_cast<std::chrono::seconds>(now).count(),
                              place.host,
                              place.pid);
}

}  // namespace

EventFile::EventFile(const fs::path& folder, int64_t last, std::string_view again) {
  std::error_code error;
  fs::create_directories(folder, error);
  fs::path path = event_file_in(folder);
  std::string kept;
  if (path.empty() || InputFile(path).size() > kMostKept) {
    path = new_name(folder);
  } else {
    kept = up_to(InputFile(path).contents(), last, again);
  }
  write_file_atomically(path, kept.empty() ? record(first_event()) : kept);
  const std::optional<std::string_view> first = first_record(kept);
  is_new_ = !first || kept.size() == kHead + first->size() + kTail;
  file_ = AppendedFile(path);
}

void EventFile::append(int64_t step, std::span<const std::string> values) {
  file_.append(record(event_of(step, values)));
}

fs::path event_file_in(const fs::path& folder) {
  std::error_code error;
  fs::path found;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    const fs::path& path = file->path();
    const bool named = path.filename().string().starts_with(kNamePrefix);
    if (named && (found.empty() || path < found)) found = path;
  }
  const bool is_absent =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (!error || is_absent) return found;
  throw EnvironmentError(fmt::format("cannot look for event files in {}", folder.string()),
                         error.message(),
                         "check that this user may read it");
}

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < table.size(); ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82F63B78U : 0);
      table[i] = value;
    }
    return table;
  }();
  uint32_t crc = ~0U;
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFF] ^ crc >> 8;
  return ~crc;
}

}  // namespace lockstep::trainers
