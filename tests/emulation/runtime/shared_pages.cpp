#include "tests/emulation/runtime/shared_pages.h"

#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::emulation {
namespace {

uint64_t identity_of(int file) {
  struct stat found = {};
  return fstat(file, &found) == 0 ? found.st_ino : 0;
}

}  // namespace

std::shared_ptr<SharedPages> SharedPages::create(size_t bytes, int device) {
  std::shared_ptr<SharedPages> made(new SharedPages);
  made->file_ = memfd_create("emulated_device", MFD_CLOEXEC);
  if (made->file_ < 0 || ftruncate(made->file_, static_cast<off_t>(bytes)) != 0) return nullptr;
  made->handle_ = {.process = getpid(),
                   .file = made->file_,
                   .identity = identity_of(made->file_),
                   .bytes = bytes,
                   .device = device};
  return made->map(nullptr) ? made : nullptr;
}

std::shared_ptr<SharedPages> SharedPages::replace(void* at, size_t bytes, int device) {
  std::shared_ptr<SharedPages> made = create(bytes, device);
  if (!made || pwrite(made->file_, at, bytes, 0) != static_cast<ssize_t>(bytes)) return nullptr;
  munmap(made->memory_, bytes);
  made->memory_ = nullptr;
  if (!made->map(at)) return nullptr;
  made->replaces_ = true;
  return made;
}

std::shared_ptr<SharedPages> SharedPages::open(const PagesHandle& handle) {
  const std::string where =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  std::shared_ptr<SharedPages> made(new SharedPages);
  made->handle_ = handle;
  made->file_ = ::open(where.c_str(), O_RDWR | O_CLOEXEC);
  const bool same = made->file_ >= 0 && identity_of(made->file_) == handle.identity;
  return same && made->map(nullptr) ? made : nullptr;
}

SharedPages::~SharedPages() {
  if (replaces_) {
    mmap(memory_,
         handle_.bytes,
         PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
         -1,
         0);
    [[maybe_unused]] const ssize_t restored = pread(file_, memory_, handle_.bytes, 0);
  } else if (memory_ != nullptr) {
    munmap(memory_, handle_.bytes);
  }
  if (file_ >= 0) close(file_);
}

bool SharedPages::map(void* at) {
  const int fixed = at == nullptr ? 0 : MAP_FIXED;
  void* const mapped =
      mmap(at, handle_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, file_, 0);
  if (mapped == MAP_FAILED) return false;
  memory_ = mapped;
  return true;
}

}  // namespace lockstep::emulation
