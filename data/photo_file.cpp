#include "data/photo_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/codecs/decode_image.h"

namespace lockstep::data {
namespace {

FileStamp stamp_of(const struct stat& file) {
  if (!S_ISREG(file.st_mode)) throw UnreadableImage("it is no plain file");
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return {.bytes = file.st_size,
          .modified_ns = file.st_mtim.tv_sec * kNanoseconds + file.st_mtim.tv_nsec};
}

class Opened {
 public:
  // A pipe of that name would be waited for.
  explicit Opened(const std::string& path)
      : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (file_ < 0) throw UnreadableImage("the file cannot be opened");
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { close(file_); }

  operator int() const { return file_; }  // NOLINT(google-explicit-constructor)

 private:
  const int file_;
};

}  // namespace

FileStamp stamp_of(const std::string& path) {
  struct stat file{};
  if (stat(path.c_str(), &file) != 0) throw UnreadableImage("the file cannot be opened");
  return stamp_of(file);
}

FileStamp read_file(const std::string& path, std::vector<std::byte>& bytes) {
  const Opened opened(path);
  struct stat file{};
  if (fstat(opened, &file) != 0) throw UnreadableImage("the file cannot be read");
  const FileStamp stamp = stamp_of(file);
  bytes.resize(static_cast<size_t>(stamp.bytes));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(opened, bytes.data() + done, bytes.size() - done);
    if (count <= 0) throw UnreadableImage("the file cannot be read");
    done += static_cast<size_t>(count);
  }
  return stamp;
}

}  // namespace lockstep::data
