// Files and links that a crash leaves whole: the old content or the new one, never a mixture.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "core/folder.h"
#include "core/function_ref.h"
#include "core/unique_fd.h"

namespace lockstep {

// Writes a new version of the file `name` of a folder: a temporary file beside it, which
// take_place() renames and the destructor otherwise removes. Errors of each function:
// EnvironmentError with the system's reason.
class AtomicFile {
 public:
  // The folder must outlive this. mode: the file's permissions, which the umask reduces. Errors:
  // also EnvironmentError where `name` is a device, a pipe or a socket, or a link to one.
  AtomicFile(const Folder& folder, std::string name, mode_t mode = 0644);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void append(std::span<const std::byte> bytes);
  // On return the appended bytes are on disk.
  void flush();
  // Requires: flush(). A symbolic link of that name is replaced, not followed. On return the new
  // name is on disk.
  void take_place();

 private:
  const Folder& folder_;
  const std::string name_;
  std::string temporary_;  // name; empty after take_place()
  UniqueFd fd_;
};

// The open folder that a file is written in. Errors: EnvironmentError naming the file.
Folder folder_for(const std::filesystem::path& file);

// Replaces `path` by the concatenation of `parts`. Errors: EnvironmentError with the system's
// reason.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);
// Replaces the file `name` of an open folder in the same way.
void write_file_atomically(const Folder& folder,
                           const std::string& name,
                           std::span<const std::span<const std::byte>> parts);
void write_file_atomically(const Folder& folder, const std::string& name, std::string_view text);

// Replaces `to` by a copy of the file `from`. Errors: EnvironmentError.
void copy_file_atomically(const std::filesystem::path& from, const std::filesystem::path& to);

// Replaces the file or link `name`, if there is one, by a symbolic link to `target`, which may be
// relative to the folder. Errors: EnvironmentError, also when `name` is a folder.
void link_atomically(const Folder& folder,
                     const std::string& name,
                     const std::filesystem::path& target);

// A file that grows at its end.
class AppendedFile {
 public:
  AppendedFile() = default;  // none yet
  // Opens `path`, or makes an empty file there. Errors: EnvironmentError, also for a symbolic link.
  explicit AppendedFile(const std::filesystem::path& path);
  AppendedFile(const Folder& folder, const std::string& name);

  // On return the bytes have been handed to the operating system. Requires: a file was opened.
  // Errors: EnvironmentError; the file is then unchanged.
  void append(std::string_view bytes) const;

  // Calls `take` with each line, without its newline, even when the file was removed. Reads in
  // blocks, so memory does not grow with the file. The last line may lack a newline. Errors:
  // EnvironmentError, and those of `take`.
  void for_each_line(FunctionRef<void(const std::string& line)> take) const;
  bool is_removed() const;

 private:
  AppendedFile(std::filesystem::path path, int folder, const char* name);

  std::filesystem::path path_;
  UniqueFd fd_;
};

}  // namespace lockstep
