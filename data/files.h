// Files of data sets: whether they are there, and those that may be missing, of another kind, or
// changed by the time they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep::data {

// Both follow symbolic links. A path without permission is an error, not a missing file. Errors:
// DataError.
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// Throws the DataError of a system call that could not `act` on a file: "open". Requires: errno is
// its own.
[[noreturn]] void refuse_by_errno(std::string_view act, const std::filesystem::path& path);

// Identity of a file's content; it changes when another file takes a photo's place.
struct FileStamp {
  int64_t bytes = 0;
  int64_t modified_ns = 0;

  bool operator==(const FileStamp& other) const = default;
};

// Both: Errors: UnreadableImage when there is no such file, or no plain one.
FileStamp stamp_of(const std::string& path);
// Errors: also UnreadableImage when it cannot be read or has more than kMaxPhotoBytes.
FileStamp read_file(const std::string& path, std::vector<std::byte>& bytes);

}  // namespace lockstep::data
#pragma GCC visibility pop
