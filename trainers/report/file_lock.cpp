#include "trainers/report/file_lock.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.h"
#include "core/printable.h"
#include "trainers/report/clock.h"
#include "trainers/report/rank_place.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, int error) {
  throw EnvironmentError(fmt::format("cannot lock {}", path.string()),
                         std::generic_category().message(error),
                         "another --output-dir, one this user may write to");
}

std::string holder_text() {
  const RankPlace here = this_place();
  return fmt::format(
      "process {} on {} since {}", here.pid, here.host, utc_text(std::chrono::system_clock::now()));
}

std::string read_start(int fd) {
  std::array<char, 400> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : "an unknown process";
}

}  // namespace

FileLock::FileLock(const fs::path& path)
    : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
  if (fd_ < 0) fail(path, errno);
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    const std::string holder = read_start(fd_);
    close(fd_);
    if (error != EWOULDBLOCK) fail(path, error);
    throw UsageError(fmt::format("{} is in use by another run", path.parent_path().string()),
                     fmt::format("its lock is held by {}", printable(holder)),
                     "another --output-dir, or wait for that run to end");
  }
  const std::string text = holder_text();
  if (ftruncate(fd_, 0) != 0 ||
      pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    const int error = errno;
    close(fd_);
    fail(path, error);
  }
}

FileLock::~FileLock() {
  close(fd_);
}

}  // namespace lockstep::trainers
