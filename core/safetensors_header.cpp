#include "core/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/round_up.h"
#include "core/words.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr size_t kMaxTensors = 100'000;

using DtypeName = std::pair<Dtype, std::string_view>;
constexpr std::array<DtypeName, 6> kDtypeNames = {{{Dtype::kF32, "F32"},
                                                   {Dtype::kF16, "F16"},
                                                   {Dtype::kBF16, "BF16"},
                                                   {Dtype::kU8, "U8"},
                                                   {Dtype::kI32, "I32"},
                                                   {Dtype::kI64, "I64"}}};

std::string_view file_name_of(Dtype dtype) {
  return std::ranges::find(kDtypeNames, dtype, &DtypeName::first)->second;
}

// One tensor's object while it is being read.
struct RawEntry {
  std::optional<Dtype> dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

// The bytes that a shape takes; nothing when their number overflows. In the overflow check zero
// extents count as one, so that the product of any of the extents fits, too.
std::optional<uint64_t> checked_bytes(const std::vector<uint64_t>& shape, Dtype dtype) {
  int64_t bound = static_cast<int64_t>(size_of(dtype));
  bool has_zero = false;
  for (const uint64_t extent : shape) {
    has_zero = has_zero || extent == 0;
    if (__builtin_mul_overflow(bound, std::max<uint64_t>(extent, 1), &bound)) return std::nullopt;
  }
  return has_zero ? 0 : static_cast<uint64_t>(bound);
}

// Reads the JSON as a stream of parser events, so that duplicate keys are detected and no deeply
// nested document is ever built.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  SafetensorsHeader take() { return std::move(header_); }
  const std::string& problem() const { return problem_; }

  bool start_object(size_t) override {
    if (place_ == Place::kOutside) return enter(Place::kTop);
    if (place_ != Place::kTop) return fail("an object where {} is expected", expected());
    if (name_ == kMetadataKey) return enter(Place::kMetadata);
    entry_ = {};
    return enter(Place::kEntry);
  }

  bool key(std::string& text) override {
    switch (place_) {
      case Place::kTop:
        return top_key(text);
      case Place::kMetadata:
        field_ = text;
        return !header_.metadata.contains(text) ||
               fail("metadata key `{}` appears twice", printable(text));
      default:
        return entry_key(text);
    }
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.emplace(field_, text);
      return true;
    }
    if (place_ != Place::kEntry || field_ != "dtype") {
      return fail("a string where {} is expected", expected());
    }
    const auto* found = std::ranges::find(kDtypeNames, text, &DtypeName::second);
    if (found == kDtypeNames.end()) {
      return fail("tensor `{}`: dtype {} is not supported (F32, F16, BF16, U8, I32 and I64 are)",
                  name_,
                  printable(text));
    }
    entry_.dtype = found->first;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::kEntry || (field_ != "shape" && field_ != "data_offsets")) {
      return fail("an array where {} is expected", expected());
    }
    numbers_ = field_ == "shape" ? &entry_.shape.emplace() : &entry_.offsets.emplace();
    return enter(Place::kNumbers);
  }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::kNumbers) return fail("a number where {} is expected", expected());
    numbers_->push_back(value);
    const size_t limit = field_ == "shape" ? Shape::kMaxRank : 2;
    return numbers_->size() <= limit ||
           fail("tensor `{}`: more than {} numbers in {}", name_, limit, field_);
  }

  bool end_array() override { return enter(Place::kEntry); }

  bool end_object() override {
    const Place left = std::exchange(place_, place_ == Place::kTop ? Place::kOutside : Place::kTop);
    return left != Place::kEntry || finish_entry();
  }

  bool number_integer(int64_t) override { return fail("a negative number"); }
  bool number_float(double, const std::string& text) override {
    return fail("{} is not an integer in range", printable(text));
  }
  bool null() override { return fail("null where {} is expected", expected()); }
  bool boolean(bool) override { return fail("a boolean where {} is expected", expected()); }
  bool binary(Json::binary_t&) override { return fail("binary data"); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return fail("the header is not valid UTF-8 JSON at its byte {}", position);
  }

 private:
  enum class Place { kOutside, kTop, kMetadata, kEntry, kNumbers };

  bool enter(Place place) {
    place_ = place;
    return true;
  }

  template <class... Args>
  bool fail(fmt::format_string<Args...> text, Args&&... args) {
    problem_ = fmt::format(text, std::forward<Args>(args)...);
    return false;
  }

  std::string expected() const {
    switch (place_) {
      case Place::kOutside:
        return "the header's object";
      case Place::kTop:
        return fmt::format("the object of `{}`", printable(name_));
      case Place::kMetadata:
        return fmt::format("a string for metadata key `{}`", printable(field_));
      case Place::kEntry:
        return fmt::format("{} of tensor `{}`", field_, name_);
      case Place::kNumbers:
        return fmt::format("an integer in {} of tensor `{}`", field_, name_);
    }
    return {};
  }

  bool top_key(const std::string& text) {
    name_ = text;
    if (text == kMetadataKey) {
      return !std::exchange(has_metadata_, true) || fail("{} appears twice", kMetadataKey);
    }
    if (!is_tensor_name(text)) {
      return fail("tensor name `{}` is not 1 to 256 of A-Z a-z 0-9 _ . - / without `..`",
                  printable(text));
    }
    if (header_.tensors.contains(text)) return fail("tensor `{}` appears twice", text);
    return header_.tensors.size() < kMaxTensors || fail("more than {} tensors", kMaxTensors);
  }

  bool entry_key(const std::string& text) {
    field_ = text;
    const bool is_dtype = text == "dtype";
    const bool is_shape = text == "shape";
    if (!is_dtype && !is_shape && text != "data_offsets") {
      return fail("tensor `{}`: unknown key `{}`", name_, printable(text));
    }
    const bool seen = is_dtype   ? entry_.dtype.has_value()
                      : is_shape ? entry_.shape.has_value()
                                 : entry_.offsets.has_value();
    return !seen || fail("tensor `{}`: key `{}` appears twice", name_, text);
  }

  bool finish_entry() {
    if (!entry_.dtype || !entry_.shape || !entry_.offsets) {
      return fail("tensor `{}`: dtype, shape or data_offsets is missing", name_);
    }
    if (entry_.offsets->size() != 2) return fail("tensor `{}`: not two offsets", name_);
    const uint64_t begin = (*entry_.offsets)[0];
    const uint64_t end = (*entry_.offsets)[1];
    if (begin > end) return fail("tensor `{}`: ends before it begins", name_);
    const std::optional<uint64_t> bytes = checked_bytes(*entry_.shape, *entry_.dtype);
    if (!bytes) return fail("tensor `{}`: its size overflows", name_);
    if (end - begin != *bytes) {
      return fail("tensor `{}`: {} bytes of data, but dtype and shape ask for {}",
                  name_,
                  end - begin,
                  *bytes);
    }
    const std::vector<int64_t> extents(entry_.shape->begin(), entry_.shape->end());
    header_.tensors.emplace(
        name_,
        SafetensorsEntry{
            .dtype = *entry_.dtype, .shape = Shape(extents), .begin = begin, .end = end});
    return true;
  }

  SafetensorsHeader header_;
  std::string problem_;
  Place place_ = Place::kOutside;
  bool has_metadata_ = false;
  std::string name_;   // the last key of the header's object
  std::string field_;  // the last key inside that
  RawEntry entry_;
  std::vector<uint64_t>* numbers_ = nullptr;  // the list in entry_ that is being read
};

using NamedEntry = std::pair<const std::string, SafetensorsEntry>;

std::vector<const NamedEntry*> by_offset(const SafetensorsHeader& header) {
  std::vector<const NamedEntry*> order;
  order.reserve(header.tensors.size());
  for (const NamedEntry& tensor : header.tensors) order.push_back(&tensor);
  std::ranges::stable_sort(order, {}, [](const NamedEntry* tensor) {
    return std::pair(tensor->second.begin, tensor->second.end);
  });
  return order;
}

void check_coverage(const SafetensorsHeader& header, uint64_t data_bytes, const std::string& file) {
  uint64_t reached = 0;
  for (const NamedEntry* tensor : by_offset(header)) {
    const auto& [name, entry] = *tensor;
    if (entry.begin != reached) {
      refuse_safetensors(file,
                         fmt::format("tensor `{}` begins at byte {} of the data, {} byte {}",
                                     name,
                                     entry.begin,
                                     entry.begin > reached ? "leaving a gap after" : "overlapping",
                                     entry.begin > reached ? reached : entry.begin));
    }
    if (entry.end > data_bytes) {
      refuse_safetensors(
          file,
          fmt::format("tensor `{}` ends at byte {} of {} bytes of data: the file is cut short",
                      name,
                      entry.end,
                      data_bytes));
    }
    reached = entry.end;
  }
  if (reached != data_bytes) {
    refuse_safetensors(file,
                       fmt::format("{} bytes follow the last tensor's data", data_bytes - reached));
  }
}

}  // namespace

bool is_tensor_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '/';
  };
  return !name.empty() && name.size() <= 256 && name != kMetadataKey &&
         name.find("..") == std::string_view::npos && std::ranges::all_of(name, allowed);
}

SafetensorsHeader parse_safetensors_header(std::string_view json,
                                           uint64_t data_bytes,
                                           const std::string& file) {
  if (json.empty() || json.front() != '{')
    refuse_safetensors(file, "the header does not begin with {");
  const std::string_view object = json.substr(0, json.find_last_not_of(' ') + 1);
  if (object.back() != '}') refuse_safetensors(file, "the header does not end with } and blanks");
  HeaderReader reader;
  if (!Json::sax_parse(object.begin(), object.end(), &reader)) {
    refuse_safetensors(file, reader.problem());
  }
  SafetensorsHeader header = reader.take();
  check_coverage(header, data_bytes, file);
  return header;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json[std::string(kMetadataKey)] = header.metadata;
  for (const NamedEntry* tensor : by_offset(header)) {
    const auto& [name, entry] = *tensor;
    nlohmann::ordered_json shape = nlohmann::ordered_json::array();
    for (int axis = 0; axis < entry.shape.rank(); ++axis) shape.push_back(entry.shape[axis]);
    json[name] = {{"dtype", file_name_of(entry.dtype)},
                  {"shape", std::move(shape)},
                  {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize(round_up(text.size(), size_t{8}), ' ');
  return text;
}

void refuse_safetensors(const std::string& file, const std::string& why) {
  throw CheckpointError(fmt::format("cannot use {} as a safetensors file", file),
                        why,
                        "an undamaged copy, or save it again in a form that is supported");
}

}  // namespace lockstep
