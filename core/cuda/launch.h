// The one way to launch a kernel. Included by .cu files alone.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include <cuda_runtime.h>

#include "core/cuda/error.h"
#include "core/stream.h"

#if !defined(LOCKSTEP_EMULATION)
// Dynamic shared memory as an array of T called `name`.
#define LS_DYNAMIC_SHARED(T, name)                              \
  extern __shared__ __align__(16) unsigned char name##_bytes[]; \
  T* name = reinterpret_cast<T*>(name##_bytes)
#endif

namespace lockstep::cuda {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t dynamic_shared_bytes = 0;
};

// Blocks of `size` that cover `count`.
constexpr unsigned blocks_for(int64_t count, int64_t size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

// Queues kernel<<<shape>>>(arguments...). An empty grid is no launch. Arguments are converted to
// the kernel's parameters; a wrong number of them does not compile. Errors: CudaError with `op`'s
// name.
template <class... Parameters, class... Arguments>
void launch(Stream& stream,
            const char* op,
            const LaunchShape& shape,
            void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "wrong number of arguments");
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  using Values = std::tuple<std::remove_cv_t<Parameters>...>;
#if defined(LOCKSTEP_EMULATION)
  struct Held {
    void (*kernel)(Parameters...);
    Values values;
  };
  const auto held = std::make_shared<Held>(Held{kernel, Values(arguments...)});
  check(emulation::enqueue_launch({.arguments = held,
                                   .argument_bytes = sizeof(Held),
                                   .invoke =
                                       [](void* memory) {
                                         auto& self = *static_cast<Held*>(memory);
                                         std::apply(self.kernel, self.values);
                                       },
                                   .kernel = reinterpret_cast<const void*>(kernel),
                                   .name = __PRETTY_FUNCTION__},
                                  shape.grid,
                                  shape.block,
                                  shape.dynamic_shared_bytes,
                                  stream.cuda()),
        op);
#else
  constexpr size_t kWithoutAsking = size_t{48} << 10;
  const auto* function = reinterpret_cast<const void*>(kernel);
  if (shape.dynamic_shared_bytes > kWithoutAsking) {
    check(cudaFuncSetAttribute(function,
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shape.dynamic_shared_bytes)),
          op);
  }
  Values values(arguments...);
  std::apply(
      [&](auto&... value) {
        void* pointers[] = {static_cast<void*>(&value)..., nullptr};
        check(cudaLaunchKernel(function,
                               shape.grid,
                               shape.block,
                               pointers,
                               shape.dynamic_shared_bytes,
                               stream.cuda()),
              op);
      },
      values);
#endif
}

}  // namespace lockstep::cuda
