// Memory that processes of the emulated machine share. It has no name in a file system, so nothing
// is left behind; others reach it through the process that made it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <sys/types.h>

namespace lockstep::emulation {

// Content of CUDA's handles.
struct PagesHandle {
  pid_t process;
  int file;
  uint64_t identity;  // of the file: numbers are used again
  size_t bytes;
  int device;
};

class SharedPages {
 public:
  // Zeros. Null: the system has no more.
  static std::shared_ptr<SharedPages> create(size_t bytes, int device);
  // In place of the private pages at `at`, with their contents; they are private again at the end.
  // Requires: whole pages.
  static std::shared_ptr<SharedPages> replace(void* at, size_t bytes, int device);
  // Another process's. Null: there is no such memory.
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
