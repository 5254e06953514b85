// Golden values that tools/make_golden.py took from PyTorch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/safetensors.h"

namespace lockstep::testing {

// One case of tests/golden/<name>.safetensors: its parameters and its tensors, these converted to
// the engine's channels-last layout. A parameter's name may be a path into arrays and objects:
// lr/0, sgd/momentum.
class GoldenCase {
 public:
  GoldenCase(const Safetensors& file, std::string parameters_json);

  std::string name() const;
  bool has(const std::string& tensor) const;
  Tensor tensor(const std::string& tensor) const;     // Errors: fails the test when it is missing
  double number(const std::string& parameter) const;  // likewise; booleans give 0 or 1
  std::string text(const std::string& parameter) const;

 private:
  const Safetensors* file_;
  std::string parameters_;
};

// tests/golden, or LOCKSTEP_GOLDEN_DIR of the environment: for a program that runs where it was not
// built.
std::filesystem::path golden_folder();
// Lives until the process ends.
const Safetensors& golden_file(const std::string& name);
// At least one. Errors: fails the test where there is none.
std::vector<GoldenCase> golden_cases(const std::string& name);
GoldenCase golden_case(const std::string& file, const std::string& name);

}  // namespace lockstep::testing
