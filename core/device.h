// Where tensors live and ops run.
#pragma once

#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)
namespace lockstep {

// kDry computes nothing: ops check their arguments and declare bytes and FLOPs in the stream's
// ledger, and tensors have shapes but no memory.
// kCuda is the one GPU that this process has chosen (core/cuda/device.h).
enum class Device : uint8_t { kCpu, kDry, kCuda };

constexpr std::string_view name_of(Device device) {
  switch (device) {
    case Device::kCpu:
      return "cpu";
    case Device::kDry:
      return "dry";
    case Device::kCuda:
      return "cuda";
  }
  return "?";
}

}  // namespace lockstep
#pragma GCC visibility pop
