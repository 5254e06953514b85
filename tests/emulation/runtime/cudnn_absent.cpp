// For builds without cudnn_graph.h, where nothing looks for a fake.
#include "tests/emulation/runtime/libraries.h"

namespace lockstep::emulation {

const FakeLibrary* fake_cudnn() {
  return nullptr;
}

}  // namespace lockstep::emulation
