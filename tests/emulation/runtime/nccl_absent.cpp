// For builds without nccl.h, where nothing looks for a fake.
#include "tests/emulation/runtime/libraries.h"

namespace lockstep::emulation {

const FakeLibrary* fake_nccl() {
  return nullptr;
}

}  // namespace lockstep::emulation
