#include "trainers/report/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "core/error.h"
#include "core/input_file.h"
#include "trainers/report/process.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr std::string_view kNamePrefix = "events.out.tfevents.";

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

template <class T>
T read(std::string_view bytes) {
  std::array<char, sizeof(T)> number{};
  std::ranges::copy_n(bytes.begin(), number.size(), number.begin());
  return std::bit_cast<T>(number);
}

// Protocol buffers: a field is its key, (number << 3) | wire type, and its value.
enum class Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(uint64_t number, Wire wire) {
  return varint(number << 3 | static_cast<uint64_t>(wire));
}

std::string bytes_field(uint64_t number, std::string_view bytes) {
  return key(number, Wire::kBytes) + varint(bytes.size()) + std::string(bytes);
}

// Fields of tensorflow.Event and what it holds.
constexpr uint64_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
constexpr uint64_t kSummaryValue = 1, kTag = 1, kSimpleValue = 2;

std::string event_at(std::chrono::system_clock::time_point time) {
  const std::chrono::duration<double> seconds = time.time_since_epoch();
  return key(kWallTime, Wire::kFixed64) + bytes_of(seconds.count());
}

std::string first_event() {
  return event_at(std::chrono::system_clock::now()) + bytes_field(kFileVersion, "brain.Event:2");
}

std::string scalar_event(int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    const std::string value = key(kSimpleValue, Wire::kFixed32);
    summary += bytes_field(
        kSummaryValue,
        bytes_field(kTag, scalar.tag) + value + bytes_of(static_cast<float>(scalar.value)));
  }
  return event_at(std::chrono::system_clock::now()) + key(kStep, Wire::kVarint) +
         varint(static_cast<uint64_t>(step)) + bytes_field(kSummary, summary);
}

constexpr size_t kHead = sizeof(uint64_t) + sizeof(uint32_t), kTail = sizeof(uint32_t);

uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

std::string record(std::string_view event) {
  const std::string size = bytes_of(uint64_t{event.size()});
  return size + bytes_of(masked_crc(size)) + std::string(event) + bytes_of(masked_crc(event));
}

// The event that `file` begins with; nothing where it is damaged or unfinished.
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
// behind it. Nothing where this is not so.
std::optional<int64_t> step_of(std::string_view event) {
  constexpr size_t kTime = 1 + sizeof(double);
  if (event.size() <= kTime || event.substr(0, 1) != key(kWallTime, Wire::kFixed64)) {
    return std::nullopt;
  }
  event.remove_prefix(kTime);
  if (event.substr(0, 1) != key(kStep, Wire::kVarint)) return 0;
  uint64_t step = 0;
  for (size_t i = 1, shift = 0; i < event.size() && shift < 64; ++i, shift += 7) {
    const auto byte = static_cast<uint8_t>(event[i]);
    step |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return static_cast<int64_t>(step);
  }
  return std::nullopt;
}

// The beginning of `file` that holds sound events of steps up to `last`.
std::string_view up_to(std::string_view file, int64_t last) {
  size_t kept = 0;
  while (const auto event = first_record(file.substr(kept))) {
    const std::optional<int64_t> step = step_of(*event);
    if (!step || *step > last) break;
    kept += kHead + event->size() + kTail;
  }
  return file.substr(0, kept);
}

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

EventFile::EventFile(const fs::path& folder, int64_t last) {
  std::error_code error;
  fs::create_directories(folder, error);
  fs::path path = event_file_in(folder);
  std::string kept;
  if (path.empty()) {
    path = new_name(folder);
  } else {
    kept = up_to(contents_of(path).value_or(""), last);
  }
  write_file_atomically(path, kept.empty() ? record(first_event()) : kept);
  file_ = AppendedFile(path);
}

void EventFile::append(int64_t step, std::span<const Scalar> scalars) {
  file_.append(record(scalar_event(step, scalars)));
}

fs::path event_file_in(const fs::path& folder) {
  std::error_code error;
  fs::path found;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    const fs::path& path = file.path();
    const bool named = path.filename().string().starts_with(kNamePrefix);
    if (named && (found.empty() || path < found)) found = path;
  }
  return found;
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
