#include "core/atomic_file.h"

#include <cerrno>
#include <string>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/errno_text.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/line_splitter.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLineBlock = 1 << 16;  // bytes that for_each_line() reads at a time

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

[[noreturn]] void fail(const fs::path& path, const char* call, int error) {
  throw EnvironmentError(
      fmt::format("cannot write {}", path.string()),
      fmt::format("{}: {}", call, errno_text(error)),
      fmt::format("check space and permissions of {}", folder_of(path).string()));
}

[[noreturn]] void fail(const Folder& folder, const std::string& name, const char* call) {
  const int error = errno;
  fail(folder.path() / name, call, error);
}

// Calls make(temporary) with one name for a file beside `name` after the other until it returns at
// least 0: it made a new file. The first names may be taken, since a killed process may have left
// its file, and process ids repeat in a container.
template <class Make>
std::pair<std::string, int> make_beside(const Folder& folder,
                                        const std::string& name,
                                        const char* call,
                                        Make&& make) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const std::string temporary = fmt::format(".tmp.{}.{}.{}", name, getpid(), i);
    const int made = make(temporary.c_str());
    if (made >= 0) return {temporary, made};
    if (errno != EEXIST) break;
  }
  fail(folder, name, call);
}

void put_in_place(const Folder& folder, const std::string& from, const std::string& to) {
  if (renameat(folder.fd(), from.c_str(), folder.fd(), to.c_str()) != 0) {
    fail(folder, to, "rename");
  }
  if (fsync(folder.fd()) == 0 || errno == EINVAL) return;  // EINVAL: no need
  fail(folder, to, "fsync of the folder");
}

}  // namespace

AtomicFile::AtomicFile(const Folder& folder, std::string name, mode_t mode)
    : folder_(folder), name_(std::move(name)) {
  struct stat found = {};
  const bool exists = fstatat(folder_.fd(), name_.c_str(), &found, 0) == 0;  // or what it links to
  if (exists && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode)) {
    throw EnvironmentError(fmt::format("cannot write {}", (folder_.path() / name_).string()),
                           "a device, a pipe or a socket has that name, and it would be replaced",
                           "the name of a file");
  }
  const auto [temporary, fd] = make_beside(folder_, name_, "open", [&](const char* path) {
    return openat(folder_.fd(), path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  });
  temporary_ = temporary;
  fd_ = UniqueFd(fd);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) folder_.remove(temporary_);
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  if (!write_all(fd_, bytes)) fail(folder_, name_, "write");
}

void AtomicFile::flush() {
  if (fsync(fd_.get()) != 0) fail(folder_, name_, "fsync");
  if (close(fd_.release()) != 0) fail(folder_, name_, "close");
}

void AtomicFile::take_place() {
  put_in_place(folder_, temporary_, name_);
  temporary_.clear();
}

Folder folder_for(const fs::path& file) {
  const fs::path folder = folder_of(file);
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) fail(file, "open", errno);
  return {folder, std::move(fd)};
}

void write_file_atomically(const Folder& folder,
                           const std::string& name,
                           std::span<const std::span<const std::byte>> parts) {
  AtomicFile file(folder, name);
  for (const std::span<const std::byte> part : parts) file.append(part);
  file.flush();
  file.take_place();
}

void write_file_atomically(const Folder& folder, const std::string& name, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  write_file_atomically(folder, name, std::span(&part, 1));
}

void write_file_atomically(const fs::path& path,
                           std::span<const std::span<const std::byte>> parts) {
  write_file_atomically(folder_for(path), path.filename().string(), parts);
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  write_file_atomically(folder_for(path), path.filename().string(), text);
}

void copy_file_atomically(const fs::path& from, const fs::path& to) {
  write_file_atomically(to, InputFile(from).contents());
}

void link_atomically(const Folder& folder, const std::string& name, const fs::path& target) {
  const std::string fresh = make_beside(folder, name, "symlink", [&](const char* path) {
                              return symlinkat(target.c_str(), folder.fd(), path);
                            }).first;
  try {
    put_in_place(folder, fresh, name);
  } catch (const EnvironmentError&) {
    folder.remove(fresh);
    throw;
  }
}

AppendedFile::AppendedFile(fs::path path, int folder, const char* name)
    : path_(std::move(path)),
      fd_(openat(folder, name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644)) {
  if (!fd_.valid()) fail(path_, "open", errno);
}

AppendedFile::AppendedFile(const fs::path& path) : AppendedFile(path, AT_FDCWD, path.c_str()) {}

AppendedFile::AppendedFile(const Folder& folder, const std::string& name)
    : AppendedFile(folder.path() / name, folder.fd(), name.c_str()) {}

void AppendedFile::append(std::string_view bytes) const {
  const off_t before = lseek(fd_.get(), 0, SEEK_END);
  if (write_all(fd_, std::as_bytes(std::span(bytes)))) return;
  const int error = errno;
  std::ignore = ftruncate(fd_.get(), before);
  fail(path_, "write", error);
}

void AppendedFile::for_each_line(FunctionRef<void(const std::string& line)> take) const {
  std::string block(kLineBlock, '\0');
  LineSplitter lines;
  for (uint64_t at = 0;;) {
    const auto read = read_at(fd_, at, std::as_writable_bytes(std::span(block)));
    if (!read) {
      const int error = errno;
      throw EnvironmentError(fmt::format("cannot read {}", path_.string()),
                             fmt::format("read: {}", errno_text(error)),
                             "check the disk that holds it");
    }
    at += *read;
    lines.add(std::string_view(block.data(), *read), take);
    if (*read < block.size()) break;
  }
  if (!lines.rest().empty()) take(lines.rest());
}

bool AppendedFile::is_removed() const {
  struct stat file = {};
  return fstat(fd_.get(), &file) != 0 || file.st_nlink == 0;
}

}  // namespace lockstep
