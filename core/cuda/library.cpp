#include "core/cuda/library.h"

#include <utility>

#include <dlfcn.h>

#include "core/error.h"

// Defined by the emulated machine (tests/emulation) alone.
extern "C" [[gnu::weak]] const char lockstep_emulated_machine;

namespace lockstep::cuda {
namespace {

std::string last_loader_error() {
  const char* const text = dlerror();
  return text == nullptr ? "the loader does not say why" : text;
}

}  // namespace

bool has_libraries() {
  return &lockstep_emulated_machine == nullptr;
}

Library::Library(std::string product, const std::string& soname, std::string_view without)
    : product_(std::move(product)),
      handle_(dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* handle) {
        if (handle != nullptr) dlclose(handle);
      }) {
  if (handle_) return;
  throw EnvironmentError(
      fmt::format("{} cannot be loaded", product_),
      last_loader_error(),
      fmt::format("install {} and let LD_LIBRARY_PATH name the folder of {}; or {}",
                  product_,
                  soname,
                  without));
}

void* Library::symbol(const char* name) const {
  if (void* const found = dlsym(handle_.get(), name)) return found;
  throw EnvironmentError(fmt::format("{} is not what this build knows", product_),
                         fmt::format("it has no function {}", name),
                         fmt::format("a newer {}", product_));
}

}  // namespace lockstep::cuda
