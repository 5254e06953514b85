#include "trainers/report/protobuf.h"

namespace lockstep::trainers::protobuf {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(uint64_t number, Wire wire) {
  return varint(number << 3 | static_cast<uint64_t>(wire));
}

std::string whole(uint64_t number, int64_t value) {
  return key(number, Wire::kVarint) + varint(static_cast<uint64_t>(value));
}

std::string real(uint64_t number, double value) {
  return key(number, Wire::kFixed64) + bytes_of(value);
}

std::string single(uint64_t number, float value) {
  return key(number, Wire::kFixed32) + bytes_of(value);
}

std::string bytes(uint64_t number, std::string_view value) {
  return key(number, Wire::kBytes) + varint(value.size()) + std::string(value);
}

std::string reals(uint64_t number, std::span<const double> values) {
  std::string packed(values.size_bytes(), '\0');
  if (!values.empty()) std::memcpy(packed.data(), values.data(), packed.size());
  return bytes(number, packed);
}

}  // namespace lockstep::trainers::protobuf
