#include "core/input_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include "core/errno_text.h"
#include "core/error.h"
#include "core/memory_limit.h"

namespace lockstep {
namespace {

[[noreturn]] void fail_to_read(const std::string& file, const std::string& why) {
  throw EnvironmentError(
      fmt::format("cannot read {}", file), why, "check the path and its permissions");
}

}  // namespace

// O_NONBLOCK: a pipe is refused below instead of waited for.
InputFile::InputFile(const std::filesystem::path& path)
    : name_(path.string()), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (!fd_.valid()) fail_to_read(name_, errno_text());
  struct stat info{};
  if (fstat(fd_.get(), &info) != 0) fail_to_read(name_, errno_text());
  if (!S_ISREG(info.st_mode)) fail_to_read(name_, "it is not a regular file");
  size_ = static_cast<uint64_t>(info.st_size);
}

void InputFile::read(uint64_t offset, std::span<std::byte> out) const {
  const std::optional<size_t> count = read_at(fd_, offset, out);
  if (!count) fail_to_read(name_, errno_text());
  if (*count < out.size()) fail_to_read(name_, "it ends early: it shrank while it was read");
}

std::string InputFile::contents(uint64_t most) const {
  if (size_ > most) {
    fail_to_read(name_, fmt::format("it has {} bytes, at most {} are read", size_, most));
  }
  require_memory(size_, name_);
  std::string bytes(size_, '\0');
  read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::optional<std::string> contents_of(const std::filesystem::path& path, uint64_t most) {
  try {
    return InputFile(path).contents(most);
  } catch (const EnvironmentError&) {
    return std::nullopt;
  }
}

}  // namespace lockstep
