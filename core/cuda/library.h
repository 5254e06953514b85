// Shared libraries that are opened when they are first needed: a program starts without cuDNN,
// cuBLASLt and NCCL, and says in plain words what is wrong with those that it finds.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/error.h"

namespace lockstep::cuda {

// True when the library is to be opened. On a real machine it always is, and a missing one is an
// error. On the emulated machine it is where a stand-in is installed, as no real library knows that
// memory.
bool has_library(const std::string& soname);

// "9.19.0" of 91900, as NVIDIA's libraries number theirs.
std::string version_text(size_t version);

// Thread safety: all functions may be called from any thread.
//
// A library stays open until the process ends, and a Library has nothing to destroy: a library's
// threads and exit handlers, and static objects that call it, may outlive any object that would
// close it.
class Library {
 public:
  // `soname` as dlopen takes it, "libcudnn.so.9". For messages: `product`, "cuDNN 9", a literal
  // that is kept; how to do `without` it; `remedy` for programs that offer that choice.
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
