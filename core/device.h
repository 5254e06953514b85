// Where tensors live and ops run.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

// kDry runs nothing: ops check their arguments and declare bytes and FLOPs in the stream's ledger,
// tensors have shapes and no memory.
enum class Device : uint8_t { kCpu, kDry };

constexpr std::string_view name_of(Device device) {
  return device == Device::kCpu ? "cpu" : "dry";
}

}  // namespace lockstep
