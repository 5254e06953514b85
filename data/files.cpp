#include "data/files.h"

#include <cerrno>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "core/errno_text.h"
#include "core/error.h"
#include "core/unique_fd.h"
#include "core/words.h"
#include "data/codecs/decode_image.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

// The topmost folder above `path` that cannot be entered.
fs::path inaccessible_parent(fs::path path) {
  std::error_code ignored;
  do {
    path = path.parent_path();
  } while (!fs::is_directory(path, ignored) && path.has_relative_path());
  return path;
}

fs::file_type type_of(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (error == std::errc::permission_denied) {
    throw DataError(
        fmt::format("the folder {} cannot be read", printable(inaccessible_parent(path).string())),
        error.message(),
        "check that you may read and enter it");
  }
  return type;
}

[[noreturn]] void refuse_photo(const char* done) {
  throw UnreadableImage(fmt::format("the file cannot be {}: {}", done, errno_text()));
}

FileStamp stamp_of(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) throw UnreadableImage("it is not a plain file");
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return {.bytes = file.st_size,
          .modified_ns = file.st_mtim.tv_sec * kNanoseconds + file.st_mtim.tv_nsec};
}

}  // namespace

bool is_file(const fs::path& path) {
  return type_of(path) == fs::file_type::regular;
}

bool is_folder(const fs::path& path) {
  return type_of(path) == fs::file_type::directory;
}

void refuse_by_errno(std::string_view act, const fs::path& path) {
  throw DataError(fmt::format("cannot {} {}", act, path.string()),
                  errno_text(),
                  "check that you may read it, and the disk");
}

FileStamp stamp_of(const std::string& path) {
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) refuse_photo("opened");
  return stamp_of(file);
}

FileStamp read_file(const std::string& path, std::vector<std::byte>& bytes) {
  // Without O_NONBLOCK, open() would wait on a pipe of that name.
  const UniqueFd opened(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!opened.valid()) refuse_photo("opened");
  struct stat file{};
  if (fstat(opened.get(), &file) != 0) refuse_photo("read");
  const FileStamp stamp = stamp_of(file);
  if (stamp.bytes > kMaxPhotoBytes) {
    throw UnreadableImage(fmt::format(
        "the file has {} bytes; at most {} Mi are read", stamp.bytes, kMaxPhotoBytes >> 20));
  }
  bytes.resize(static_cast<size_t>(stamp.bytes));
  const std::optional<size_t> count = read_at(opened, 0, bytes);
  if (!count) refuse_photo("read");
  if (*count < bytes.size()) throw UnreadableImage("the file became shorter while it was read");
  return stamp;
}

}  // namespace lockstep::data
