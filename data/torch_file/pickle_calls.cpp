#include "data/torch_file/pickle_calls.h"

#include <cstdint>
#include <string_view>

#include "data/torch_file/pickle_format.h"

namespace lockstep::data {
namespace {

constexpr size_t kMaxAxes = 8;  // more than layers of PyTorch have; copies of a shape stay small
constexpr size_t kMaxTypeName = 40;
constexpr std::string_view kTorch = "torch.";

std::vector<int64_t> integers(const Pickle& pickle, const std::vector<PickleRef>& items) {
  std::vector<int64_t> values;
  values.reserve(items.size());
  for (const PickleRef item : items) {
    values.push_back(as<int64_t>(pickle, item, "has a shape of what is not a number"));
  }
  return values;
}

bool has_negative_bit(const Pickle& pickle, PickleRef metadata) {
  const auto* dict = std::get_if<PickledDict>(&pickle.at(metadata));
  constexpr size_t kMaxBits = 8;  // longer dicts would cost time at each tensor
  const bool is_short = dict != nullptr && dict->items.size() <= kMaxBits;
  const PickleValue* found = is_short ? pickle.find(*dict, "neg") : nullptr;
  const bool* bit = found == nullptr ? nullptr : std::get_if<bool>(found);
  return bit != nullptr && *bit;
}

// storage, offset, size, stride, requires_grad, hooks, the type if it is typed, metadata
PickleValue make_tensor(const Pickle& pickle, const std::vector<PickleRef>& given, bool typed) {
  constexpr size_t kType = 6;
  constexpr const char* kNoShape = "has a tensor without a shape";
  const std::vector<PickleRef>& shape = as<PickledTuple>(pickle, given[2], kNoShape).items;
  const std::vector<PickleRef>& strides = as<PickledTuple>(pickle, given[3], kNoShape).items;
  if (shape.size() != strides.size()) throw PickleDamage{"has a tensor of other strides than axes"};
  if (shape.size() > kMaxAxes) return PickledOther{"a tensor of more than 8 axes"};
  PickledTensor tensor{
      .storage = as<PickledStorage>(pickle, given[0], "makes a tensor without a storage"),
      .offset = as<int64_t>(pickle, given[1], "has a tensor without an offset"),
      .shape = integers(pickle, shape),
      .strides = integers(pickle, strides)};
  if (typed) {
    const std::string& type =
        as<PickledGlobal>(pickle, given[kType], "has a tensor of no type").name;
    if (type.size() > kMaxTypeName) throw PickleDamage{"has a tensor of no type"};
    tensor.storage.type = type;
  }
  const size_t metadata = typed ? kType + 1 : kType;
  tensor.negated = given.size() > metadata && has_negative_bit(pickle, given[metadata]);
  return tensor;
}

PickleValue made_by(const Pickle& pickle, PickleRef callee, const std::vector<PickleRef>& given) {
  const std::string& name = as<PickledGlobal>(pickle, callee, "calls what is not a name").name;
  if (name == pickle::kDefaultDict || (name == pickle::kOrderedDict && given.empty())) {
    return PickledDict{};
  }
  const bool typed = name == pickle::kRebuildTypedTensor;
  if (typed ? given.size() >= 7 : name == pickle::kRebuildTensor && given.size() >= 6) {
    return make_tensor(pickle, given, typed);
  }
  if (name == pickle::kRebuildParameter || name == pickle::kRebuildParameterWithState) {
    const auto* tensor =
        given.empty() ? nullptr : std::get_if<PickledTensor>(&pickle.at(given.front()));
    if (tensor != nullptr) return *tensor;
  }
  return PickledObject{callee};
}

}  // namespace

PickleValue result_of_call(const Pickle& pickle, PickleRef callee, PickleRef arguments) {
  const std::vector<PickleRef>& given =
      as<PickledTuple>(pickle, arguments, "calls something without a tuple").items;
  if (const auto* made = std::get_if<PickledObject>(&pickle.at(callee))) return *made;
  const std::string& name = as<PickledGlobal>(pickle, callee, "calls what is not a name").name;
  if (name == pickle::kRebuildFromType && given.size() == 4) {  // function, type, arguments, state
    const auto* inner = std::get_if<PickledTuple>(&pickle.at(given[2]));
    if (inner != nullptr) return made_by(pickle, given[0], inner->items);
  }
  return made_by(pickle, callee, given);
}

// ('storage', type, key, location, number of elements)
PickledStorage named_storage(const Pickle& pickle, PickleRef id) {
  constexpr const char* kNone = "names no storage";
  constexpr const char* kNoType = "has a storage of no type";
  constexpr size_t kParts = 5;
  const std::vector<PickleRef>& given = as<PickledTuple>(pickle, id, kNone).items;
  if (given.size() != kParts || as<std::string>(pickle, given[0], kNone) != "storage") {
    throw PickleDamage{kNone};
  }
  const std::string& type = as<PickledGlobal>(pickle, given[1], kNoType).name;
  if (type.size() > kMaxTypeName || !type.starts_with(kTorch) || !type.ends_with("Storage")) {
    throw PickleDamage{kNoType};
  }
  PickledStorage storage{.type = type.substr(type.rfind('.') + 1),
                         .key = as<std::string>(pickle, given[2], "has a storage without a key"),
                         .elements = as<int64_t>(pickle, given[4], "has a storage without a size")};
  if (storage.key.size() > kMaxPickledName)
    throw PickleDamage{"has a storage's key that is too long"};
  if (storage.elements < 0) throw PickleDamage{"has a storage of a negative size"};
  return storage;
}

}  // namespace lockstep::data
