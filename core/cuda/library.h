// Shared libraries that are opened when they are first needed: a program starts without cuDNN,
// cuBLASLt and NCCL, and the error for one that is missing or too old says what to do.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/error.h"

namespace lockstep::cuda {

// True when the library should be opened. On a real machine this is always so, and a missing
// library is an error. On the emulated machine only libraries with an emulated version can be used.
bool has_library(const std::string& soname);

// Formats the version number of an NVIDIA library: "9.19.0" for 91900.
std::string version_text(size_t version);

// Thread safety: all functions may be called from any thread.
//
// A library stays open until the process ends, and a Library has nothing to destroy: a library's
// threads and exit handlers, and static objects that call it, may outlive any object that would
// close it.
class Library {
 public:
  // `soname` is dlopen's: "libcudnn.so.9". For messages: `product`, "cuDNN 9", a string literal;
  // `without`, how to do without the library; `remedy`, for programs that offer that choice.
  // Errors: EnvironmentError when there is none, or it does not load.
  Library(const char* product,
          const std::string& soname,
          std::string_view without,
          Remedy remedy = Remedy::kNone);

  // Errors: EnvironmentError when the library has no such function.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  const char* product_;
  Remedy remedy_;
  void* handle_;
};

}  // namespace lockstep::cuda
