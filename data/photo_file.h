// Files that may be missing, of another kind, or changed by the time they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::data {

// Identity of a file's content; it changes when another file takes a photo's place.
struct FileStamp {
  int64_t bytes = 0;
  int64_t modified_ns = 0;

  bool operator==(const FileStamp& other) const = default;
};

// Both: Errors: UnreadableImage when there is no such file, or no plain one.
FileStamp stamp_of(const std::string& path);
// Errors: also UnreadableImage when it cannot be read.
FileStamp read_file(const std::string& path, std::vector<std::byte>& bytes);

}  // namespace lockstep::data
