// Prints a benchmark's lines while it runs.
#pragma once

#include <cstdio>
#include <string>

namespace lockstep::bench {

// Writes at once, so that a reader sees each line when it is measured.
class Printer {
 public:
  // A null file: silent, as all ranks but one are.
  explicit Printer(std::FILE* file) : file_(file) {}

  void print(const std::string& text) const {
    if (file_ == nullptr) return;
    std::fputs(text.c_str(), file_);
    std::fflush(file_);
  }

 private:
  std::FILE* file_;
};

}  // namespace lockstep::bench
