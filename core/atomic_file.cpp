#include "core/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/input_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

[[noreturn]] void fail(const fs::path& path, const char* call, int error) {
  throw EnvironmentError(
      fmt::format("cannot write {}", path.string()),
      fmt::format("{}: {}", call, std::generic_category().message(error)),
      fmt::format("check space and permissions of {}", folder_of(path).string()));
}

// Calls make(name) with names beside `target` until it makes something new there, which it says by
// returning at least 0. A killed process may have left its file, and in a container ids repeat.
template <class Make>
std::pair<fs::path, int> make_beside(const fs::path& target, const char* call, Make&& make) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::string name = fmt::format(".tmp.{}.{}.{}", target.filename().string(), getpid(), i);
    const fs::path path = folder_of(target) / name;
    const int made = make(path.c_str());
    if (made >= 0) return {path, made};
    if (errno != EEXIST) break;
  }
  fail(target, call, errno);
}

// A new file beside its target; unlinked unless it becomes the target.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target) : target_(target) {
    std::tie(path_, fd_) = make_beside(target, "open", [](const char* path) {
      return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    });
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) close(fd_);
    if (!path_.empty()) unlink(path_.c_str());
  }

  void append(std::span<const std::byte> bytes) {
    constexpr size_t kMaxCall = size_t{1} << 30;
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), std::min(bytes.size(), kMaxCall));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(target_, "write", errno);
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }

  void become_target() {
    if (fsync(fd_) != 0) fail(target_, "fsync", errno);
    if (close(std::exchange(fd_, -1)) != 0) fail(target_, "close", errno);
    if (rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "rename", errno);
    path_.clear();
  }

 private:
  fs::path target_;
  fs::path path_;
  int fd_ = -1;
};

void sync_folder(const fs::path& target) {
  const int fd = open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(target, "open of the folder", errno);
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  if (error != 0 && error != EINVAL) fail(target, "fsync of the folder", error);  // EINVAL: no need
}

}  // namespace

void write_file_atomically(const fs::path& path,
                           std::span<const std::span<const std::byte>> parts) {
  TemporaryFile file(path);
  for (const std::span<const std::byte> part : parts) file.append(part);
  file.become_target();
  sync_folder(path);
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  write_file_atomically(path, std::span(&part, 1));
}

void copy_file_atomically(const fs::path& from, const fs::path& to) {
  write_file_atomically(to, InputFile(from).contents());
}

void link_atomically(const fs::path& path, const fs::path& target) {
  const fs::path fresh = make_beside(path, "symlink", [&](const char* name) {
                           return symlink(target.c_str(), name);
                         }).first;
  if (rename(fresh.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(fresh.c_str());
    fail(path, "rename", error);
  }
  sync_folder(path);
}

AppendedFile::AppendedFile(const fs::path& path)
    : path_(path),
      fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644)) {
  if (!fd_.valid()) fail(path_, "open", errno);
}

void AppendedFile::append(std::string_view bytes) const {
  const off_t before = lseek(fd_.get(), 0, SEEK_END);
  while (!bytes.empty()) {
    const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      std::ignore = ftruncate(fd_.get(), before);
      fail(path_, "write", error);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace lockstep
