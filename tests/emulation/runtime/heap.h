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
    int device;                               // that was current
    std::shared_ptr<SharedPages> pages = {};  // where other processes see it
    int imports = 0;                          // how often another's was opened; 0: it is ours
  };

  // Every bit set: NaN in floats. Null when the system has no more. Requires: bytes > 0.
  void* allocate(size_t bytes, Place place, int device);
  // False unless `begin` is the beginning of a block in that place.
  bool free(void* begin, Place place);

  // Lets other processes see the block of the device that holds `at`. Nothing if there is none.
  std::optional<PagesHandle> share(const void* at);
  // Another process's block. Null if there is no such. The same memory however often it is opened.
  void* import(const PagesHandle& handle);
  bool close(void* begin);  // false unless it was opened

  // The block that holds `at`; null for memory that is nobody's.
  const Block* find(const void* at) const;
  std::span<const std::byte> range_of(const void* at) const;  // its bytes
  // Where these bytes lie; nothing if they leave the block that they begin in.
  std::optional<Place> place_of(const void* at, size_t bytes) const;
  // As cudaMalloc is known to take them: from 2 MiB on in units of 2 MiB, else of 512 bytes.
  static size_t taken_bytes(size_t bytes);
  size_t device_bytes(int device) const;
  size_t pinned_bytes() const;

 private:
  std::map<const std::byte*, Block> blocks_;
};

}  // namespace lockstep::emulation
