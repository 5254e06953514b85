#include "core/folder.h"

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/errno_text.h"
#include "core/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

[[noreturn]] void fail_at_folder(const fs::path& path, const char* call, int error) {
  throw EnvironmentError(fmt::format("cannot use the folder {}", path.string()),
                         fmt::format("{}: {}", call, errno_text(error)),
                         "check that it is there, and who may read and write it");
}

}  // namespace

Folder::Folder(fs::path path) : path_(std::move(path)), fd_(open(path_.c_str(), kOpenFolder)) {
  if (!fd_.valid()) fail_at_folder(path_, "open", errno);
}

Folder Folder::duplicate() const {
  UniqueFd again(fcntl(fd(), F_DUPFD_CLOEXEC, 0));
  if (!again.valid()) fail_at_folder(path_, "dup", errno);
  return {path_, std::move(again)};
}

Folder Folder::inner(const std::string& name) const {
  const fs::path path = path_ / name;
  if (mkdirat(fd(), name.c_str(), 0777) != 0 && errno != EEXIST) {
    fail_at_folder(path, "mkdir", errno);
  }
  UniqueFd inner(openat(fd(), name.c_str(), kOpenFolder));
  if (!inner.valid()) fail_at_folder(path, "open", errno);
  return {path, std::move(inner)};
}

bool Folder::is_removed() const {
  struct stat here = {};
  return fstat(fd(), &here) != 0 || here.st_nlink == 0;
}

bool Folder::is_same(const Folder& other) const {
  struct stat here = {};
  struct stat there = {};
  return fstat(fd(), &here) == 0 && fstat(other.fd(), &there) == 0 && is_same_file(here, there);
}

fs::path Folder::present_path() const {
  struct stat here = {};
  struct stat there = {};
  const bool in_place = fstat(fd(), &here) == 0 && stat(path_.c_str(), &there) == 0;
  if (in_place && is_same_file(here, there)) return path_;
  std::error_code error;
  const fs::path now = fs::read_symlink(fmt::format("/proc/self/fd/{}", fd()), error);
  return error ? path_ : now;
}

std::vector<std::string> Folder::names() const {
  const int again = openat(fd(), ".", kOpenFolder);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(again < 0 ? nullptr : fdopendir(again),
                                                    closedir);
  if (!entries) fail_at_folder(path_, "open", errno);
  std::vector<std::string> names;
  while (true) {
    errno = 0;  // readdir() returns null at the end and after an error
    // NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of this call alone
    const dirent* const entry = readdir(entries.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) fail_at_folder(path_, "list", errno);
  return names;
}

bool Folder::remove(const std::string& name) const {
  return unlinkat(fd(), name.c_str(), 0) == 0 || errno == ENOENT;
}

}  // namespace lockstep
