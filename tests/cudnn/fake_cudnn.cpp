// A library that calls itself cuDNN: FAKE_CUDNN_VERSION and FAKE_CUDNN_CUDA say which.
#include <cstdlib>

namespace {

size_t number(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoul(text, nullptr, 10);
}

}  // namespace

extern "C" {
size_t cudnnGetVersion() {
  return number("FAKE_CUDNN_VERSION");
}
size_t cudnnGetCudartVersion() {
  return number("FAKE_CUDNN_CUDA");
}
void cudnnGetLastErrorString() {}
void cudnnCreate() {}
void cudnnDestroy() {}
void cudnnSetStream() {}
void cudnnBackendCreateDescriptor() {}
void cudnnBackendDestroyDescriptor() {}
void cudnnBackendSetAttribute() {}
void cudnnBackendGetAttribute() {}
void cudnnBackendFinalize() {}
void cudnnBackendExecute() {}
}
