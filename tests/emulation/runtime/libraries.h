// The shared libraries of the emulated machine.
#pragma once

namespace lockstep::emulation {

struct FakeLibrary {
  void* (*symbol)(const char* name);  // null: the library lacks the function
};

// An entry in a table of a library's functions. The library's own header declares the function.
struct FakeFunction {
  const char* name;
  void* address;
};
#define LS_FAKE(function) {#function, reinterpret_cast<void*>(&(function))}

// Null: the library is not installed.
const FakeLibrary* find_library(const char* soname);
const FakeLibrary* fake_driver();
const FakeLibrary* fake_nccl();
const FakeLibrary* fake_cublaslt();
const FakeLibrary* fake_cudnn();

}  // namespace lockstep::emulation
