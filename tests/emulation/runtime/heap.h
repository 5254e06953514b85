// Memory of the fake devices and page-locked memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "tests/emulation/runtime/shared_pages.h"

namespace lockstep::emulation {

enum class Place : uint8_t { kPageable, kPinned, kDevice };

class Heap {
 public:
  struct Block {
    size_t bytes;
    Place place;
    int device;                               // the current device at allocation
    std::shared_ptr<SharedPages> pages = {};  // if shared with other processes
    int imports = 0;                          // times an imported block was opened; 0: own block
  };

  // The memory has every bit set: NaN in floats. Null if the system has no more memory. Requires:
  // bytes > 0.
  void* allocate(size_t bytes, Place place, int device);
  // False unless `begin` is the beginning of a block of type `place`.
  bool free(void* begin, Place place);

  // Shares the device block that contains `at` with other processes. Nothing if there is no such
  // block or it cannot be shared.
  std::optional<PagesHandle> share(const void* at);
  // Opens another process's block; null if it does not exist. Opening it again returns the same
  // memory.
  void* import(const PagesHandle& handle);
  bool close(void* begin);  // false unless the block was opened

  // The block that contains `at`; null if there is none.
  const Block* find(const void* at) const;
  std::span<const std::byte> range_of(const void* at) const;  // the block's bytes
  // The type of memory of these bytes; nothing if they extend beyond the block in which they begin.
  std::optional<Place> place_of(const void* at, size_t bytes) const;
  // The bytes that cudaMalloc is known to use: a multiple of 2 MiB from 2 MiB on, otherwise of 512
  // bytes.
  static size_t taken_bytes(size_t bytes);
  size_t device_bytes(int device) const;
  size_t pinned_bytes() const;

 private:
  std::map<const std::byte*, Block> blocks_;
};

}  // namespace lockstep::emulation
