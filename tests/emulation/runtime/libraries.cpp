#include "tests/emulation/runtime/libraries.h"

#include <string_view>

namespace lockstep::emulation {

const FakeLibrary* find_library(const char* soname) {
  const std::string_view name = soname;
  if (name == "libcuda.so.1") return fake_driver();
  if (name == "libnccl.so.2") return fake_nccl();
  if (name.starts_with("libcublasLt.so.")) return fake_cublaslt();
  if (name == "libcudnn.so.9") return fake_cudnn();
  return nullptr;
}

}  // namespace lockstep::emulation
