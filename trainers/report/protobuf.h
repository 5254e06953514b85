// A writer of protocol buffers: a message is the concatenation of its fields.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::trainers::protobuf {

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
std::string key(uint64_t number, Wire wire);
std::string varint(uint64_t value);

// The fields are written with zeros too.
std::string whole(uint64_t number, int64_t value);  // int32, int64, bool, enum
std::string real(uint64_t number, double value);
std::string single(uint64_t number, float value);
std::string bytes(uint64_t number, std::string_view value);          // also string and messages
std::string reals(uint64_t number, std::span<const double> values);  // packed

}  // namespace lockstep::trainers::protobuf
