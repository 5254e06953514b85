#include "trainers/report/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/error.h"
#include "core/input_file.h"
#include "data/codecs/encode_png.h"
#include "trainers/config/rank_machine.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

// A writer of protocol buffers: a message is the concatenation of its fields, which are written
// with zeros too.
namespace pb {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

// The bytes of a number in memory, which are those of a file.
template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// A field is its key, (number << 3) | wire type, and its value.
enum class Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(uint64_t number, Wire wire) {
  return varint(number << 3 | static_cast<uint64_t>(wire));
}

// int32, int64, bool, enum
std::string whole(uint64_t number, int64_t value) {
  return key(number, Wire::kVarint) + varint(static_cast<uint64_t>(value));
}

std::string real(uint64_t number, double value) {
  return key(number, Wire::kFixed64) + bytes_of(value);
}

std::string single(uint64_t number, float value) {
  return key(number, Wire::kFixed32) + bytes_of(value);
}

// string and messages too
std::string bytes(uint64_t number, std::string_view value) {
  return key(number, Wire::kBytes) + varint(value.size()) + std::string(value);
}

// packed
std::string reals(uint64_t number, std::span<const double> values) {
  std::string packed(values.size_bytes(), '\0');
  if (!values.empty()) std::memcpy(packed.data(), values.data(), packed.size());
  return bytes(number, packed);
}

}  // namespace pb

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

namespace {

// Fields of tensorflow.Summary.Value.
constexpr uint64_t kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kTensor = 8,
                   kMetadata = 9;

// For the plugin of TensorBoard that shows the value.
std::string metadata(std::string_view plugin, std::string_view content) {
  constexpr uint64_t kPluginData = 1, kName = 1, kContent = 2;
  std::string data = pb::bytes(kName, plugin);
  if (!content.empty()) data += pb::bytes(kContent, content);
  return pb::bytes(kMetadata, pb::bytes(kPluginData, data));
}

// Bins grow by a tenth from 1e-12 to 1e20, on both sides of 0.
const std::vector<double>& bin_edges() {
  static const std::vector<double> edges = [] {
    std::vector<double> positive;
    double edge = 1e-12;
    while (edge < 1e20) positive.push_back(std::exchange(edge, edge * 1.1));
    std::vector<double> all(positive.rbegin(), positive.rend());
    for (double& negative : all) negative = -negative;
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return edges;
}

// A bin holds its left edge. Values beyond the last edges count in the outermost bins.
std::vector<double> bin_counts(std::span<const float> values) {
  const std::vector<double>& edges = bin_edges();
  std::vector<double> counts(edges.size() - 1);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const auto right = std::ranges::upper_bound(edges, static_cast<double>(value));
    const auto bin = std::clamp<ptrdiff_t>(
        right - edges.begin() - 1, 0, static_cast<ptrdiff_t>(counts.size()) - 1);
    ++counts[static_cast<size_t>(bin)];
  }
  return counts;
}

struct Moments {
  double min = INFINITY, max = -INFINITY, count = 0, sum = 0, sum_of_squares = 0;
};

Moments moments_of(std::span<const float> values) {
  Moments moments;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double x = value;
    moments.min = std::min(moments.min, x);
    moments.max = std::max(moments.max, x);
    moments.count += 1;
    moments.sum += x;
    moments.sum_of_squares += x * x;
  }
  return moments;
}

std::string hparam_value(const std::variant<bool, double, std::string>& value) {
  constexpr uint64_t kNumber = 2, kString = 3, kBool = 4;
  if (const bool* on = std::get_if<bool>(&value)) return pb::whole(kBool, *on ? 1 : 0);
  if (const double* number = std::get_if<double>(&value)) return pb::real(kNumber, *number);
  return pb::bytes(kString, std::get<std::string>(value));
}

double seconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::string session_value(std::string_view tag, uint64_t field, std::string_view session) {
  constexpr uint64_t kVersion = 1;
  return pb::bytes(kTag, tag) +
         metadata("hparams", pb::whole(kVersion, 0) + pb::bytes(field, session));
}

}  // namespace

std::string scalar_value(std::string_view tag, double value) {
  return pb::bytes(kTag, tag) + pb::single(kSimpleValue, static_cast<float>(value));
}

std::string image_value(std::string_view tag, const Picture& picture) {
  constexpr uint64_t kHeight = 1, kWidth = 2, kColorspace = 3, kEncoded = 4;
  const std::string png =
      data::encode_png({picture.height, picture.width}, picture.channels, picture.pixels);
  if (png.empty()) return {};
  const std::string image = pb::whole(kHeight, picture.height) + pb::whole(kWidth, picture.width) +
                            pb::whole(kColorspace, picture.channels) + pb::bytes(kEncoded, png);
  return pb::bytes(kTag, tag) + pb::bytes(kImage, image);
}

std::string histogram_value(std::string_view tag, std::span<const float> values) {
  constexpr uint64_t kMin = 1, kMax = 2, kNum = 3, kSum = 4, kSumSquares = 5, kLimits = 6,
                     kCounts = 7;
  const Moments moments = moments_of(values);
  if (moments.count == 0) return {};
  const std::vector<double> counts = bin_counts(values);
  const auto filled = [](double count) { return count > 0; };
  const auto first = std::ranges::find_if(counts, filled) - counts.begin();
  const auto last = std::find_if(counts.rbegin(), counts.rend(), filled).base() - counts.begin();
  // Limits are right ends: an empty bin in front tells where the first one begins.
  std::vector<double> shown(counts.begin() + first, counts.begin() + last);
  shown.insert(shown.begin(), 0);
  const std::span<const double> limits =
      std::span(bin_edges()).subspan(static_cast<size_t>(first), shown.size());
  const std::string histogram = pb::real(kMin, moments.min) + pb::real(kMax, moments.max) +
                                pb::real(kNum, moments.count) + pb::real(kSum, moments.sum) +
                                pb::real(kSumSquares, moments.sum_of_squares) +
                                pb::reals(kLimits, limits) + pb::reals(kCounts, shown);
  return pb::bytes(kTag, tag) + pb::bytes(kHistogram, histogram);
}

std::string text_value(std::string_view tag, std::string_view text) {
  constexpr uint64_t kType = 1, kShape = 2, kStrings = 8, kDimension = 2, kSize = 1;
  constexpr int64_t kDtString = 7;
  const std::string tensor = pb::whole(kType, kDtString) +
                             pb::bytes(kShape, pb::bytes(kDimension, pb::whole(kSize, 1))) +
                             pb::bytes(kStrings, text);
  return pb::bytes(kTag, std::string(tag) + "/text_summary") + pb::bytes(kTensor, tensor) +
         metadata("text", {});
}

std::string session_start_value(std::span<const HParam> hparams,
                                std::chrono::system_clock::time_point start) {
  constexpr uint64_t kSessionStart = 3, kHParams = 1, kStartTime = 5, kKey = 1, kValue = 2;
  std::string session;
  for (const HParam& hparam : hparams) {
    session += pb::bytes(
        kHParams, pb::bytes(kKey, hparam.name) + pb::bytes(kValue, hparam_value(hparam.value)));
  }
  return session_value("_hparams_/session_start_info",
                       kSessionStart,
                       session + pb::real(kStartTime, seconds_of(start)));
}

std::string session_end_value(std::chrono::system_clock::time_point end) {
  constexpr uint64_t kSessionEnd = 4, kStatus = 1, kEndTime = 2;
  constexpr int64_t kSuccess = 1;
  return session_value(kSessionEndTag,
                       kSessionEnd,
                       pb::whole(kStatus, kSuccess) + pb::real(kEndTime, seconds_of(end)));
}

}  // namespace lockstep::trainers
