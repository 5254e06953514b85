// Memory that processes of the emulated machine share. It has no name in a file system, so nothing
// is left behind; other processes open it through the process that created it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <sys/types.h>

namespace lockstep::emulation {

// The content of CUDA's IPC handles.
struct PagesHandle {
  pid_t process;
  int file;
  uint64_t identity;  // the file's inode, since descriptors are reused
  size_t bytes;
  int device;
};

class SharedPages {
 public:
  // Zeros. Null: the system has no more memory.
  static std::shared_ptr<SharedPages> create(size_t bytes, int device);
  // Replaces the private pages at `at` by shared ones with the same contents. The destructor makes
  // them private again. Requires: whole pages.
  static std::shared_ptr<SharedPages> replace(void* at, size_t bytes, int device);
  // Opens another process's memory. Null: there is no such memory.
  static std::shared_ptr<SharedPages> open(const PagesHandle& handle);

  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages();

  void* memory() const { return memory_; }
  const PagesHandle& handle() const { return handle_; }

 private:
  SharedPages() = default;
  bool map(void* at);

  PagesHandle handle_{};
  int file_ = -1;
  void* memory_ = nullptr;
  bool replaces_ = false;
};

}  // namespace lockstep::emulation
