// Shared libraries that the emulated machine has.
#pragma once

namespace lockstep::emulation {

struct FakeLibrary {
  void* (*symbol)(const char* name);  // null: it has no such function
};

// One of a library's functions, for a table of them. It is defined by the library's own header.
struct FakeFunction {
  const char* name;
  void* address;
};
#define LS_FAKE(function) {#function, reinterpret_cast<void*>(&(function))}

// Null: it is not installed.
const FakeLibrary* find_library(const char* soname);
const FakeLibrary* fake_driver();
const FakeLibrary* fake_nccl();
const FakeLibrary* fake_cublaslt();
const FakeLibrary* fake_cudnn();

}  // namespace lockstep::emulation
