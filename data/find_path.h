// Whether files and folders are there. What may not be looked at is refused, not taken for missing.
#pragma once

#include <filesystem>

namespace lockstep::data {

// Both follow symbolic links. Errors: DataError where permission is missing.
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

}  // namespace lockstep::data
