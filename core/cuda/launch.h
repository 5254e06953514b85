// The only way to launch kernels. Only .cu files include it.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include <cuda_runtime.h>

#include "core/cuda/launch_shape.h"
#include "core/cuda/watch.h"
#include "core/stream.h"

#if !defined(LOCKSTEP_EMULATION)
// Dynamic shared memory as an array of T called `name`.
#define LS_DYNAMIC_SHARED(T, name)                              \
  extern __shared__ __align__(16) unsigned char name##_bytes[]; \
  T* name = reinterpret_cast<T*>(name##_bytes)
#endif

namespace lockstep::cuda {

// Queues kernel<<<shape>>>(arguments...). An empty grid is no launch. Arguments are converted to
// the kernel's parameters; a wrong number of them does not compile. Errors: CudaError with `op`;
// those of limit_queue().
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
  // Copies the arguments, as CUDA does: the emulated stream may run the kernel after the caller's
  // arguments are gone.
  using Held = std::pair<void (*)(Parameters...), Values>;
  const auto held = std::make_shared<Held>(kernel, Values(arguments...));
  check_launch(emulation::enqueue_launch({.arguments = held,
                                          .argument_bytes = sizeof(Held),
                                          .invoke =
                                              [](void* memory) {
                                                auto& self = *static_cast<Held*>(memory);
                                                std::apply(self.first, self.second);
                                              },
                                          .kernel = reinterpret_cast<const void*>(kernel),
                                          .op = op,
                                          .name = __PRETTY_FUNCTION__},
                                         shape.grid,
                                         shape.block,
                                         shape.dynamic_shared_bytes,
                                         stream.cuda()),
               op,
               shape);
#else
  constexpr size_t kWithoutAsking = size_t{48} << 10;
  const auto* function = reinterpret_cast<const void*>(kernel);
  if (shape.dynamic_shared_bytes > kWithoutAsking) {
    check_launch(cudaFuncSetAttribute(function,
                                      cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(shape.dynamic_shared_bytes)),
                 op,
                 shape);
  }
  Values values(arguments...);
  std::apply(
      [&](auto&... value) {
        void* pointers[] = {static_cast<void*>(&value)..., nullptr};
        check_launch(cudaLaunchKernel(function,
                                      shape.grid,
                                      shape.block,
                                      pointers,
                                      shape.dynamic_shared_bytes,
                                      stream.cuda()),
                     op,
                     shape);
      },
      values);
#endif
  limit_queue(stream.cuda());
}

}  // namespace lockstep::cuda
