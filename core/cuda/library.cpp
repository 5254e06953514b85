#include "core/cuda/library.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include "core/cuda/python_packages.h"

// Defined only by the emulated machine (tests/emulation), which has its own libraries. They return
// null for a library that it lacks, and for a function that a library lacks.
extern "C" [[gnu::weak]] const void* lockstep_emulated_library(const char* soname);
extern "C" [[gnu::weak]] void* lockstep_emulated_symbol(const void* library, const char* name);

namespace lockstep::cuda {
namespace {

std::string last_loader_error() {
  const char* const text = dlerror();
  return text == nullptr ? "the loader does not say why" : text;
}

bool is_emulated() {
  return &lockstep_emulated_library != nullptr;
}

void* open(const char* soname) {
  if (is_emulated()) return const_cast<void*>(lockstep_emulated_library(soname));
  return open_library(soname);
}

}  // namespace

bool has_library(const std::string& soname) {
  return !is_emulated() || lockstep_emulated_library(soname.c_str()) != nullptr;
}

std::string version_text(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Library::Library(const char* product,
                 const std::string& soname,
                 std::string_view without,
                 Remedy remedy)
    : product_(product), remedy_(remedy), handle_(open(soname.c_str())) {
  if (handle_ != nullptr) return;
  throw EnvironmentError(
      fmt::format("{} cannot be loaded", product_),
      is_emulated() ? fmt::format("the emulated machine has no {}", soname) : last_loader_error(),
      fmt::format("install {} and let LD_LIBRARY_PATH name the folder of {}; or {}",
                  product_,
                  soname,
                  without),
      remedy_);
}

void* Library::symbol(const char* name) const {
  void* const found =
      is_emulated() ? lockstep_emulated_symbol(handle_, name) : dlsym(handle_, name);
  if (found != nullptr) return found;
  throw EnvironmentError(fmt::format("{} lacks a function that this build needs", product_),
                         fmt::format("it has no function {}", name),
                         fmt::format("a newer {}", product_),
                         remedy_);
}

}  // namespace lockstep::cuda
