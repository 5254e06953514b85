// Files and links that a crash leaves whole: the old content or the new one, never a mixture.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace lockstep {

// Replaces `path` by the concatenation of `parts`: a temporary file beside it, fsync, close,
// rename, fsync of the folder. The temporary file is removed on failure. A symbolic link at `path`
// is replaced, not followed. Errors: EnvironmentError with the system's reason.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Appends `bytes` to the file `path` that is open for appending as `fd`. Errors: EnvironmentError
// with the system's reason; then the file is as before.
void append_whole(int fd, const std::filesystem::path& path, std::string_view bytes);

// Replaces `to` by a copy of the file `from`. Errors: EnvironmentError.
void copy_file_atomically(const std::filesystem::path& from, const std::filesystem::path& to);

// Replaces `path`, whatever file or link is there, by a symbolic link to `target`, which may be
// relative to the link's folder. Errors: EnvironmentError, also when `path` is a folder.
void link_atomically(const std::filesystem::path& path, const std::filesystem::path& target);

}  // namespace lockstep
