// usage: mutants_<flavor>            lists all mutants, one "kernel bug" a line
//        mutants_<flavor> KERNEL BUG  runs one: 0 right result, 1 wrong result, 3 device fault
#include <cstdio>
#include <cstring>

#include "tests/emulation/mutants/mutant.h"

namespace lockstep::emulation::mutants {

std::vector<Mutant>& all_mutants() {
  static std::vector<Mutant> mutants;
  return mutants;
}

namespace {

int run(std::string_view kernel, std::string_view bug) {
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.kernel != kernel || mutant.bug != bug) continue;
    try {
      const bool right = mutant.gives_right_result();
      std::puts(right ? "right result" : "wrong result");
      return right ? 0 : 1;
    } catch (const cuda::CudaError& error) {
      std::puts(error.what());
      return 3;
    }
  }
  std::puts("no such mutant");
  return 2;
}

}  // namespace
}  // namespace lockstep::emulation::mutants

int main(int argc, char** argv) {
  using namespace lockstep::emulation::mutants;
  if (argc == 3) return run(argv[1], argv[2]);
  for (const Mutant& mutant : all_mutants())
    std::printf("%s %s\n", mutant.kernel.data(), mutant.bug.data());
  return 0;
}
