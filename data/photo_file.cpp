#include "data/photo_file.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/unique_fd.h"
#include "data/codecs/decode_image.h"

namespace lockstep::data {
namespace {

[[noreturn]] void refuse(const char* done) {
  throw UnreadableImage(
      fmt::format("the file cannot be {}: {}", done, std::generic_category().message(errno)));
}

FileStamp stamp_of(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) throw UnreadableImage("it is no plain file");
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return {.bytes = file.st_size,
          .modified_ns = file.st_mtim.tv_sec * kNanoseconds + file.st_mtim.tv_nsec};
}

}  // namespace

FileStamp stamp_of(const std::string& path) {
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) refuse("opened");
  return stamp_of(file);
}

FileStamp read_file(const std::string& path, std::vector<std::byte>& bytes) {
  // A pipe of that name would be waited for.
  const UniqueFd opened(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!opened.valid()) refuse("opened");
  struct stat file{};
  if (fstat(opened.get(), &file) != 0) refuse("read");
  const FileStamp stamp = stamp_of(file);
  bytes.resize(static_cast<size_t>(stamp.bytes));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(opened.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0) refuse("read");
    if (count == 0) throw UnreadableImage("the file became shorter while it was read");
    done += static_cast<size_t>(count);
  }
  return stamp;
}

}  // namespace lockstep::data
