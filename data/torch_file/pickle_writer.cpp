#include "data/torch_file/pickle_writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "data/torch_file/pickle_format.h"

namespace lockstep::data {
namespace {

std::string_view storage_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return "torch.FloatStorage";
    case Dtype::kF16:
      return "torch.HalfStorage";
    case Dtype::kBF16:
      return "torch.BFloat16Storage";
    case Dtype::kU8:
      return "torch.ByteStorage";
    case Dtype::kI32:
      return "torch.IntStorage";
    case Dtype::kI64:
      return "torch.LongStorage";
  }
  return {};
}

class Pickler {
 public:
  Pickler() { op(pickle::kProto).put(pickle::kProtocol); }

  Pickler& op(uint8_t code) { return put(code); }
  Pickler& text(std::string_view text) {
    op(pickle::kBinUnicode).put(static_cast<uint32_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  Pickler& number(int64_t value) {
    if (value >= std::numeric_limits<int32_t>::min() &&
        value <= std::numeric_limits<int32_t>::max()) {
      return op(pickle::kBinInt).put(static_cast<int32_t>(value));
    }
    return op(pickle::kLong1).put(uint8_t{sizeof(value)}).put(value);
  }
  Pickler& number(double value) {
    return op(pickle::kBinFloat).put(__builtin_bswap64(std::bit_cast<uint64_t>(value)));
  }
  // "collections.OrderedDict"
  Pickler& global(std::string_view name) {
    const size_t dot = name.rfind('.');
    op(pickle::kGlobal);
    bytes_ += name.substr(0, dot);
    bytes_ += '\n';
    bytes_ += name.substr(dot + 1);
    bytes_ += '\n';
    return *this;
  }
  Pickler& empty_ordered_dict() {
    return global(pickle::kOrderedDict).op(pickle::kEmptyTuple).op(pickle::kReduce);
  }
  Pickler& numbers(const std::vector<int64_t>& values) {
    op(pickle::kMark);
    for (const int64_t value : values) number(value);
    return op(pickle::kTuple);
  }

  std::string take() { return op(pickle::kStop).bytes_; }

 private:
  template <class T>
  Pickler& put(T value) {
    const auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
    bytes_.append(bytes.data(), bytes.size());
    return *this;
  }

  std::string bytes_;
};

void put_tensor(Pickler& out, const Tensor& tensor, size_t storage) {
  const Shape& shape = tensor.shape();
  std::vector<int64_t> extents;
  extents.reserve(static_cast<size_t>(shape.rank()));
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()));
  for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  int64_t stride = 1;
  for (size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= std::max<int64_t>(1, extents[axis]);
  }
  out.global(pickle::kRebuildTensor).op(pickle::kMark);
  out.op(pickle::kMark).text("storage").global(storage_of(tensor.dtype()));
  out.text(std::to_string(storage)).text("cpu").number(tensor.numel());
  out.op(pickle::kTuple).op(pickle::kBinPersId);
  out.number(int64_t{0}).numbers(extents).numbers(strides).op(pickle::kNewFalse);
  out.empty_ordered_dict().op(pickle::kTuple).op(pickle::kReduce);
}

void put_tensors(Pickler& out, const std::map<std::string, Tensor>& tensors) {
  out.empty_ordered_dict().op(pickle::kMark);
  size_t storage = 0;
  for (const auto& [name, tensor] : tensors) {
    out.text(name);
    put_tensor(out, tensor, storage++);
  }
  out.op(pickle::kSetItems);
}

void put_scaler(Pickler& out, const ScalerState& state) {
  out.op(pickle::kEmptyDict).op(pickle::kMark);
  for (const auto& [name, value] : state) {
    out.text(name);
    std::visit([&](auto number) { out.number(number); }, value);
  }
  out.op(pickle::kSetItems);
}

}  // namespace

std::string pickle_of(const std::map<std::string, Tensor>& tensors,
                      const std::optional<ScalerState>& scaler) {
  Pickler out;
  if (!scaler) {
    put_tensors(out, tensors);
    return out.take();
  }
  out.op(pickle::kEmptyDict).op(pickle::kMark).text("model");
  put_tensors(out, tensors);
  out.text("scaler");
  put_scaler(out, *scaler);
  out.op(pickle::kSetItems);
  return out.take();
}

}  // namespace lockstep::data
