// Reads Python's pickles as torch.save writes them. No code is run: of the names that a pickle can
// call, those that make tensors and dicts are known, and what others make stays a PickledObject.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep::data {

using PickleRef = uint32_t;  // a value's place in its Pickle

struct PickledGlobal {
  std::string name;  // "torch._utils._rebuild_tensor_v2"
};
struct PickledStorage {
  std::string type;      // "FloatStorage"
  std::string key;       // names the member of the file with its bytes
  int64_t elements = 0;  // not negative
};
struct PickledTensor {
  PickledStorage storage;
  int64_t offset = 0;  // of its first element in the storage; these three are as the file says
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // as many, in elements
  bool negated = false;          // the storage has the negative values
};
struct PickledTuple {
  std::vector<PickleRef> items;
};
struct PickledList {
  std::vector<PickleRef> items;
};
struct PickledDict {
  std::vector<std::pair<PickleRef, PickleRef>> items;  // a key that is set twice is there twice
};
// An unknown name makes such an object.
struct PickledObject {
  PickleRef type = 0;  // a PickledGlobal
};
// A value of which only the kind is kept.
struct PickledOther {
  std::string_view kind;  // "a set"
};
using PickleValue = std::variant<std::monostate,  // None
                                 bool,
                                 int64_t,
                                 double,
                                 std::string,
                                 PickledGlobal,
                                 PickledStorage,
                                 PickledTensor,
                                 PickledTuple,
                                 PickledList,
                                 PickledDict,
                                 PickledObject,
                                 PickledOther>;

// Values refer to each other by index, so neither a deep nor a circular value uses up the stack.
struct Pickle {
  std::vector<PickleValue> values;
  PickleRef root = 0;

  const PickleValue& at(PickleRef ref) const { return values[ref]; }
  // Returns the last value under this key, or null.
  const PickleValue* find(const PickledDict& dict, std::string_view key) const;
  // Returns the words by which errors call a value: "a tensor", "a 'numpy.ndarray'".
  std::string kind_of(const PickleValue& value) const;
};

// Errors: CheckpointError, naming `file`, for a pickle that is truncated, breaks the format, is
// longer than 16 MiB or makes more than a million values.
Pickle read_pickle(std::span<const std::byte> bytes, const std::string& file);

}  // namespace lockstep::data
