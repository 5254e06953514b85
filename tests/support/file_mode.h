// Files and folders that may not be read, written or entered.
#pragma once

#include <filesystem>

namespace lockstep::testing {

// While it lives `path` has the mode of these octal digits: 0 for nothing, 0555 for no writing.
// Root is bound by it in programs that run with ProgramOptions::modes_bind alone.
class FileMode {
 public:
  FileMode(std::filesystem::path path, unsigned mode)
      : path_(std::move(path)), before_(std::filesystem::status(path_).permissions()) {
    std::filesystem::permissions(path_, static_cast<std::filesystem::perms>(mode));
  }
  FileMode(const FileMode&) = delete;
  FileMode& operator=(const FileMode&) = delete;
  ~FileMode() {
    std::error_code ignored;
    std::filesystem::permissions(path_, before_, ignored);
  }

 private:
  std::filesystem::path path_;
  std::filesystem::perms before_;
};

}  // namespace lockstep::testing
