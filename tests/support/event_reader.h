// Reads TensorBoard's event files as protocol buffers without code of trainers/report. Checks the
// checksums, accepts fields in any order and refuses unknown fields.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_dir.h"

namespace lockstep::testing {

inline uint32_t slow_crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78U : 0);
  }
  return ~crc;
}

template <class T>
T number_in(std::string_view bytes) {
  T number{};
  if (bytes.size() < sizeof(T)) throw std::runtime_error("a number is cut off");
  std::memcpy(&number, bytes.data(), sizeof(T));
  return number;
}

// A message: the values of each field, in order. Fixed-size numbers are kept as their bytes.
using Message = std::multimap<uint64_t, std::string>;

inline uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) break;
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  throw std::runtime_error("a varint is cut off");
}

inline Message parse_message(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const uint64_t key = take_varint(bytes);
    size_t size = 0;
    switch (key & 7) {
      case 0: {
        const uint64_t value = take_varint(bytes);
        message.emplace(key >> 3, std::string(reinterpret_cast<const char*>(&value), 8));
        continue;
      }
      case 1:
        size = 8;
        break;
      case 2:
        size = take_varint(bytes);
        break;
      case 5:
        size = 4;
        break;
      default:
        throw std::runtime_error("a field of an unknown kind");
    }
    if (size > bytes.size()) throw std::runtime_error("a field is cut off");
    message.emplace(key >> 3, bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return message;
}

// The last value of a field; empty if the field is missing.
inline std::string field(const Message& message, uint64_t number) {
  const auto [first, last] = message.equal_range(number);
  return first == last ? "" : std::prev(last)->second;
}

inline int64_t whole_field(const Message& message, uint64_t number) {
  const std::string value = field(message, number);
  return value.empty() ? 0 : number_in<int64_t>(value);
}

struct ReadEvent {
  int64_t step = 0;
  std::string file_version;
  std::map<std::string, Message> values;  // tensorflow.Summary.Value, by tag
};

// The events in a file's bytes. Throws if a record is damaged.
inline std::vector<ReadEvent> events_of(std::string_view file) {
  std::vector<ReadEvent> events;
  const auto masked = [](std::string_view bytes) {
    return std::rotr(slow_crc32c(bytes), 15) + 0xA282EAD8U;
  };
  while (!file.empty()) {
    const auto size = number_in<uint64_t>(file);
    if (number_in<uint32_t>(file.substr(8)) != masked(file.substr(0, 8)) ||
        size > file.size() - 16) {
      throw std::runtime_error("the size of a record is damaged");
    }
    const std::string_view bytes = file.substr(12, size);
    if (number_in<uint32_t>(file.substr(12 + size)) != masked(bytes)) {
      throw std::runtime_error("a record is damaged");
    }
    file.remove_prefix(size + 16);
    const Message event = parse_message(bytes);
    ReadEvent read{.step = whole_field(event, 2), .file_version = field(event, 3), .values = {}};
    for (const auto& [key, value] : parse_message(field(event, 5))) {
      const Message parsed = parse_message(value);
      if (!read.values.emplace(field(parsed, 1), parsed).second) {
        throw std::runtime_error("an event has a tag twice");
      }
    }
    events.push_back(read);
  }
  return events;
}

// The only event file of a folder.
inline std::vector<ReadEvent> read_events(const std::filesystem::path& folder) {
  std::string bytes;
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (!file.path().filename().string().starts_with("events.out.tfevents.")) continue;
    bytes = read_text(file.path());
    ++files;
  }
  if (files != 1) throw std::runtime_error(std::to_string(files) + " event files");
  return events_of(bytes);
}

// The values of a scalar by step. Throws if a step occurs twice.
inline std::map<int64_t, float> scalars_of(const std::vector<ReadEvent>& events,
                                           const std::string& tag) {
  std::map<int64_t, float> scalars;
  for (const ReadEvent& event : events) {
    const auto found = event.values.find(tag);
    if (found == event.values.end()) continue;
    const auto value = number_in<float>(field(found->second, 2));
    if (!scalars.emplace(event.step, value).second) {
      throw std::runtime_error(tag + " stands twice at a step");
    }
  }
  return scalars;
}

}  // namespace lockstep::testing
