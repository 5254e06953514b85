// Launches kernel<<<grid, block, shared, stream>>>(arguments...) by a function call, since g++
// cannot parse the original syntax.
#pragma once

#include <memory>

#include "tests/emulation/launch.h"

namespace lockstep::emulation {

// Returns a function to call with the kernel's arguments. It copies them.
template <class Kernel>
auto launch(Kernel* kernel, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  return [=](const auto&... arguments) {
    auto body = [=] { kernel(arguments...); };
    using Body = decltype(body);
    enqueue_launch({.arguments = std::make_shared<Body>(body),
                    .argument_bytes = sizeof(Body),
                    .invoke = [](void* memory) { (*static_cast<Body*>(memory))(); },
                    .kernel = reinterpret_cast<const void*>(kernel),
                    .op = "a program's own kernel",
                    .name = __PRETTY_FUNCTION__},
                   grid,
                   block,
                   shared_bytes,
                   stream);
  };
}

}  // namespace lockstep::emulation
