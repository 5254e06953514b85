// Tells whether files and folders are there. A path without permission is an error, not a missing
// file.
#pragma once

#include <filesystem>

namespace lockstep::data {

// Both follow symbolic links. Errors: DataError where permission is missing.
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

}  // namespace lockstep::data
