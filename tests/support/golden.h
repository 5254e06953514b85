// Golden values that tools/make_golden.py took from PyTorch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/safetensors.h"

namespace lockstep::testing {

// One case of tests/golden/<name>.safetensors: its parameters and its tensors, which are converted
// to the engine's channels-last layout. A parameter's name may be a path into arrays and objects,
// such as lr/0 or sgd/momentum.
class GoldenCase {
 public:
  GoldenCase(const Safetensors& file, std::string parameters_json);

  std::string name() const;
  bool has(const std::string& tensor) const;
  Tensor tensor(const std::string& tensor) const;     // Errors: fails the test if it is missing
  double number(const std::string& parameter) const;  // likewise; booleans give 0 or 1
  std::string text(const std::string& parameter) const;

 private:
  const Safetensors* file_;
  std::string parameters_;
};

// tests/golden, or the folder in LOCKSTEP_GOLDEN_DIR, for programs that run on a machine other than
// the one where they were built.
std::filesystem::path golden_folder();
// Valid until the process ends.
const Safetensors& golden_file(const std::string& name);
// Returns at least one case. Errors: fails the test if there is none.
std::vector<GoldenCase> golden_cases(const std::string& name);
GoldenCase golden_case(const std::string& file, const std::string& name);

}  // namespace lockstep::testing
