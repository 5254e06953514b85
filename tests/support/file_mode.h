// Files and folders that may not be read, written or entered.
#pragma once

#include <filesystem>

namespace lockstep::testing {

// Gives `path` the mode with these octal digits (0: no access, 0555: no writing) for the lifetime
// of the object. The mode restricts root only in programs that run with
// ProgramOptions::respects_modes.
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
