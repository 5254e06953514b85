// Names and texts of the errors that the fake runtime returns or that Lockstep's messages quote.
#include "tests/emulation/runtime/state.h"

using namespace lockstep::emulation;

namespace {

struct Known {
  cudaError_t code;
  const char* name;
  const char* text;
};

#define KNOWN(code, text) {code, #code, text}
constexpr Known kKnown[] = {
    KNOWN(cudaSuccess, "no error"),
    KNOWN(cudaErrorInvalidValue, "invalid argument"),
    KNOWN(cudaErrorMemoryAllocation, "out of memory"),
    KNOWN(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    KNOWN(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    KNOWN(cudaErrorInsufficientDriver,
          "CUDA driver version is insufficient for CUDA runtime version"),
    KNOWN(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    KNOWN(cudaErrorInvalidDevice, "invalid device ordinal"),
    KNOWN(cudaErrorNoKernelImageForDevice,
          "no kernel image is available for execution on the device"),
    KNOWN(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    KNOWN(cudaErrorUnsupportedPtxVersion,
          "the provided PTX was compiled with an unsupported toolchain."),
    KNOWN(cudaErrorDeviceUninitialized, "invalid device context"),
    KNOWN(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    KNOWN(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    KNOWN(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    KNOWN(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    KNOWN(cudaErrorNotReady, "device not ready"),
    KNOWN(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    KNOWN(cudaErrorMisalignedAddress, "misaligned address"),
    KNOWN(cudaErrorLaunchFailure, "unspecified launch failure"),
    KNOWN(cudaErrorNotPermitted, "operation not permitted"),
    KNOWN(cudaErrorNotSupported, "operation not supported"),
    KNOWN(cudaErrorSystemNotReady, "system not yet initialized"),
    KNOWN(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    KNOWN(cudaErrorStreamCaptureInvalidated,
          "operation failed due to a previous error during capture"),
    KNOWN(cudaErrorStreamCaptureMerge,
          "operation would result in a merge of separate capture sequences"),
    KNOWN(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    KNOWN(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    KNOWN(cudaErrorStreamCaptureIsolation,
          "dependency created on uncaptured work in another stream"),
    KNOWN(cudaErrorStreamCaptureImplicit,
          "operation would make the legacy stream depend on a capturing blocking stream"),
    KNOWN(cudaErrorCapturedEvent,
          "operation not permitted on an event last recorded in a capturing stream"),
    KNOWN(cudaErrorStreamCaptureWrongThread,
          "attempt to terminate a thread-local capture sequence from another thread"),
};
#undef KNOWN

constexpr Known kUnknown = {cudaErrorUnknown, "unrecognized error code", "unrecognized error code"};

const Known& find(cudaError_t code) {
  for (const Known& known : kKnown) {
    if (known.code == code) return known;
  }
  return kUnknown;
}

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t status) {
  return find(status).name;
}
const char* cudaGetErrorString(cudaError_t status) {
  return find(status).text;
}
cudaError_t cudaPeekAtLastError() {
  const std::lock_guard lock(state().mutex);
  return state().sticky != cudaSuccess ? state().sticky : this_thread().last;
}
cudaError_t cudaGetLastError() {
  const cudaError_t status = cudaPeekAtLastError();
  this_thread().last = cudaSuccess;
  return status;
}

}  // extern "C"
