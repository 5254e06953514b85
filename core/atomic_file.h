// Files and links that a crash leaves whole: the old content or the new one, never a mixture.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "core/unique_fd.h"

namespace lockstep {

// Replaces `path` by the concatenation of `parts`: a temporary file beside it, fsync, close,
// rename, fsync of the folder. The temporary file is removed on failure. A symbolic link at `path`
// is replaced, not followed. Errors: EnvironmentError with the system's reason.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Replaces `to` by a copy of the file `from`. Errors: EnvironmentError.
void copy_file_atomically(const std::filesystem::path& from, const std::filesystem::path& to);

// Replaces `path`, whatever file or link is there, by a symbolic link to `target`, which may be
// relative to the link's folder. Errors: EnvironmentError, also when `path` is a folder.
void link_atomically(const std::filesystem::path& path, const std::filesystem::path& target);

// A file that grows at its end.
class AppendedFile {
 public:
  AppendedFile() = default;  // none yet
  // Opens `path`, or makes an empty file there. Errors: EnvironmentError, also for a symbolic link.
  explicit AppendedFile(const std::filesystem::path& path);

  // The bytes are the system's when this returns. Requires: a file. Errors: EnvironmentError; then
  // the file is as before.
  void append(std::string_view bytes) const;

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
};

}  // namespace lockstep
