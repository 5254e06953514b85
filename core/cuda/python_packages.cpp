#include "core/cuda/python_packages.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <system_error>

#include <dlfcn.h>

namespace lockstep::cuda {
namespace {

namespace fs = std::filesystem;

const char* variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody writes it
  return value == nullptr || *value == '\0' ? nullptr : value;
}

// The entries of a folder, sorted by name; empty when it cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  std::ranges::sort(entries);
  return entries;
}

}  // namespace

std::vector<fs::path> python_prefixes() {
  std::vector<fs::path> prefixes;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* const prefix = variable(name)) prefixes.emplace_back(prefix);
  }
  if (const char* const base = variable("PYTHONUSERBASE")) {
    prefixes.emplace_back(base);
  } else if (const char* const home = variable("HOME")) {
    prefixes.push_back(fs::path(home) / ".local");
  }
  prefixes.emplace_back("/usr/local");
  prefixes.emplace_back("/usr");
  return prefixes;
}

std::vector<std::string> find_in_packages(std::span<const fs::path> prefixes,
                                          std::string_view soname) {
  std::vector<std::string> found;
  for (const fs::path& prefix : prefixes) {
    for (const fs::path& python : entries_of(prefix / "lib")) {
      if (!python.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const fs::path& package : entries_of(python / packages / "nvidia")) {
          std::error_code error;
          const fs::path file = package / "lib" / soname;
          if (fs::exists(file, error)) found.push_back(file.string());
        }
      }
    }
  }
  return found;
}

void* open_library(const char* soname) {
  constexpr int kMode = RTLD_NOW | RTLD_LOCAL;
  if (void* const handle = dlopen(soname, kMode)) return handle;
  for (const std::string& file : find_in_packages(python_prefixes(), soname)) {
    if (void* const handle = dlopen(file.c_str(), kMode)) return handle;
  }
  return nullptr;
}

}  // namespace lockstep::cuda
