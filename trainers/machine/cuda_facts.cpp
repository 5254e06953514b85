#include "trainers/machine/cuda_facts.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <system_error>

#include <fmt/core.h>

#include "comm/nccl/connect.h"
#include "core/error.h"
#include "core/function_ref.h"
#include "kernels/conv/conv2d_cudnn.h"
#include "kernels/linear/linear_cublaslt.h"

namespace lockstep::trainers {
namespace {

LibraryFacts read_library(bool is_expected, FunctionRef<std::string()> version) {
  try {
    return {.version = version(), .is_expected = is_expected};
  } catch (const Error& error) {
    const std::string why = error.why().empty() ? "" : fmt::format(" ({})", error.why());
    return {.problem = error.what() + why, .is_expected = is_expected};
  }
}

}  // namespace

bool CudaFacts::is_usable() const {
  const auto is_new_enough = [](const cuda::DeviceProperties& device) {
    return device.major >= cuda::kOldestMajor;
  };
  return !obstacle && std::ranges::all_of(devices, is_new_enough);
}

bool has_gpu_traces(const std::filesystem::path& root) {
  for (const char* trace : {"proc/driver/nvidia/version", "dev/nvidiactl", "dev/nvidia0"}) {
    std::error_code error;
    if (std::filesystem::exists(root / trace, error)) return true;
  }
  return false;
}

CudaFacts read_gpus() {
  const char* const mask =
      std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe): nobody writes it
  CudaFacts facts = {.obstacle = cuda::find_obstacle(),
                     .has_traces = has_gpu_traces(),
                     .driver = cuda::driver_version(),
                     .toolkit = cuda::runtime_version()};
  if (mask != nullptr) facts.mask = mask;
  if (!facts.obstacle) facts.devices = cuda::list_devices();
  return facts;
}

LibraryFacts read_cudnn() {
  return read_library(kernels::cudnn::is_available(), [] { return kernels::cudnn::version(); });
}

CudaFacts read_cuda() {
  CudaFacts facts = read_gpus();
  facts.cudnn = read_cudnn();
  facts.cublaslt = {.problem = "this build has no cuBLASLt"};
  if (kernels::cublaslt::is_available()) {
    facts.cublaslt = read_library(true, [] { return kernels::cublaslt::version(); });
  }
  facts.nccl = read_library(false, [] { return comm::nccl::version(); });
  return facts;
}

}  // namespace lockstep::trainers
