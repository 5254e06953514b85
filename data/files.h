// Checks for files of data sets, and reads files that may be missing, of another kind, or changed
// since they were found.
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

// Throws a DataError for a system call that failed to `act` on a file, such as "open". Requires:
// errno is that of the call.
[[noreturn]] void refuse_by_errno(std::string_view act, const std::filesystem::path& path);

// Identifies a version of a file; it changes when the photo is replaced by another file.
struct FileStamp {
  int64_t bytes = 0;
  int64_t modified_ns = 0;

  bool operator==(const FileStamp& other) const = default;
};

// Errors of both: UnreadableImage when there is no such file, or it is not a regular file.
FileStamp stamp_of(const std::string& path);
// Errors: also UnreadableImage when it cannot be read or has more than kMaxPhotoBytes.
FileStamp read_file(const std::string& path, std::vector<std::byte>& bytes);

}  // namespace lockstep::data
#pragma GCC visibility pop
