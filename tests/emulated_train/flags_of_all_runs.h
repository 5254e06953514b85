// Flags that tests/long/over_cudnn.py adds to every run on the fake device.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::testing {

inline std::vector<std::string> flags_of_all_runs() {
  const char* const text = std::getenv("LOCKSTEP_TEST_FLAGS");
  std::istringstream words(text == nullptr ? "" : text);
  std::vector<std::string> flags;
  for (std::string flag; words >> flag;) flags.push_back(flag);
  return flags;
}

}  // namespace lockstep::testing
