// libFuzzer's entry. The target's name comes with LOCKSTEP_FUZZ_TARGET. With LOCKSTEP_FUZZ_SEEDS it
// writes the target's seeds into that folder and ends.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/target.h"
#include "tests/support/temp_dir.h"

namespace {

const lockstep::fuzz::Target* target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("LOCKSTEP_FUZZ_TARGET");
  target = lockstep::fuzz::find_target(name != nullptr ? name : "");
  if (target == nullptr) {
    std::fprintf(stderr, "LOCKSTEP_FUZZ_TARGET is one of:\n");
    for (const auto& each : lockstep::fuzz::all_targets()) {
      std::printf("%.*s\n", static_cast<int>(each.name.size()), each.name.data());
    }
    std::exit(2);
  }
  if (const char* folder = std::getenv("LOCKSTEP_FUZZ_SEEDS")) {
    int number = 0;
    for (const std::string& seed : target->seeds()) {
      const std::string name = "seed" + std::to_string(number++);
      lockstep::testing::write_text(std::filesystem::path(folder) / name, seed);
    }
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::fuzz::run(*target, {reinterpret_cast<const char*>(data), size});
  return 0;
}
