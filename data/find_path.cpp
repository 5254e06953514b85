#include "data/find_path.h"

#include <system_error>

#include <fmt/core.h>

#include "core/error.h"
#include "core/printable.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

// The folder above `path` that cannot be entered: all above that one can.
fs::path closed_above(fs::path path) {
  std::error_code ignored;
  do {
    path = path.parent_path();
  } while (!fs::is_directory(path, ignored) && path.has_relative_path());
  return path;
}

fs::file_type type_of(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (error == std::errc::permission_denied) {
    throw DataError(
        fmt::format("the folder {} cannot be read", printable(closed_above(path).string())),
        error.message(),
        "check that you may read and enter it");
  }
  return type;
}

}  // namespace

bool is_file(const fs::path& path) {
  return type_of(path) == fs::file_type::regular;
}

bool is_folder(const fs::path& path) {
  return type_of(path) == fs::file_type::directory;
}

}  // namespace lockstep::data
