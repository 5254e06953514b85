// Shared libraries that the emulated machine has.
#pragma once

namespace lockstep::emulation {

struct FakeLibrary {
  void* (*symbol)(const char* name);  // null: it has no such function
};

// Null: it is not installed.
const FakeLibrary* find_library(const char* soname);
const FakeLibrary* fake_driver();
const FakeLibrary* fake_nccl();
const FakeLibrary* fake_cublaslt();

}  // namespace lockstep::emulation
