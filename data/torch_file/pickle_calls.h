// Finds what calls and names in a pickle stand for, without running them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/torch_file/pickle_reader.h"

namespace lockstep::data {

// Thrown where values do not fit together.
struct PickleDamage {
  std::string why;  // goes on after "it "
};

constexpr size_t kMaxPickledName = 256;  // bytes

template <class T>
const T& as(const Pickle& pickle, PickleRef ref, const char* otherwise) {
  const T* value = std::get_if<T>(&pickle.at(ref));
  if (value == nullptr) throw PickleDamage{otherwise};
  return *value;
}

// Returns what a call makes: a dict or a tensor where the callee is known, else a PickledObject.
// Errors of both: PickleDamage.
PickleValue result_of_call(const Pickle& pickle, PickleRef callee, PickleRef arguments);

// Returns the storage that a persistent id names.
PickledStorage named_storage(const Pickle& pickle, PickleRef id);

}  // namespace lockstep::data
