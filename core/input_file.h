// A file that is read at given offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/unique_fd.h"

namespace lockstep {

// Thread safety: const functions may be called from any thread.
class InputFile {
 public:
  // Errors: EnvironmentError when it cannot be opened or is not a regular file.
  explicit InputFile(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }  // bytes, when it was opened

  // Fills `out` from `offset` on. Errors: EnvironmentError, also when the file ends too early.
  void read(uint64_t offset, std::span<std::byte> out) const;
  // The whole file. Errors: as read(), and those of require_memory(); EnvironmentError where it has
  // more bytes than `most`.
  std::string contents(uint64_t most = UINT64_MAX) const;

 private:
  std::string name_;
  UniqueFd fd_;
  uint64_t size_ = 0;
};

// The bytes of a regular file; nothing when there is none that this user may read, or when it has
// more bytes than `most`.
std::optional<std::string> contents_of(const std::filesystem::path& path,
                                       uint64_t most = UINT64_MAX);

}  // namespace lockstep
