// For builds without cublasLt.h, where nothing looks for a fake.
#include "tests/emulation/runtime/libraries.h"

namespace lockstep::emulation {

const FakeLibrary* fake_cublaslt() {
  return nullptr;
}

}  // namespace lockstep::emulation
