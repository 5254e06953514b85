#include "trainers/torch_file/pickle_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_map>

#include <fmt/core.h>

#include "core/words.h"
#include "trainers/torch_file/pickle_format.h"
#include "trainers/torch_file/refuse.h"

namespace lockstep::trainers {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr size_t kMaxValues = 1'000'000;
constexpr size_t kMaxName = 256;
constexpr size_t kMaxAxes = 8;  // more than layers of PyTorch have; copies of a shape stay small

constexpr std::array<std::string_view, 11> kStorages = {"FloatStorage",
                                                        "DoubleStorage",
                                                        "HalfStorage",
                                                        "BFloat16Storage",
                                                        "LongStorage",
                                                        "IntStorage",
                                                        "ShortStorage",
                                                        "CharStorage",
                                                        "ByteStorage",
                                                        "BoolStorage",
                                                        "UntypedStorage"};
constexpr std::string_view kTorch = "torch.";

bool is_storage(std::string_view name) {
  return name.starts_with(kTorch) &&
         std::ranges::find(kStorages, name.substr(kTorch.size())) != kStorages.end();
}

bool is_known(std::string_view name) {
  return name == pickle::kOrderedDict || name == pickle::kRebuildTensor ||
         name == pickle::kRebuildParameter || is_storage(name);
}

// The stack machine that runs a pickle.
class Unpickler {
 public:
  Unpickler(std::span<const std::byte> bytes, const std::string& file)
      : bytes_(bytes), file_(file) {}

  Pickle run() {
    if (bytes_.size() > kMaxBytes) {
      damaged(fmt::format("it has {} bytes, above {}", bytes_.size(), kMaxBytes));
    }
    if (take<uint8_t>() != pickle::kProto) damaged("it does not begin with a protocol");
    if (const auto protocol = take<uint8_t>(); protocol != pickle::kProtocol) {
      refuse(fmt::format(
          "its pickle has protocol {}, torch.save writes {}", protocol, pickle::kProtocol));
    }
    for (uint8_t op = take<uint8_t>(); op != pickle::kStop; op = take<uint8_t>()) {
      if (!push_constant(op) && !use_memo(op) && !gather(op)) call(op);
    }
    result_.root = pop();
    if (!stack_.empty() || !marks_.empty()) damaged("values are left over");
    return std::move(result_);
  }

 private:
  // Values that stand for themselves.
  bool push_constant(uint8_t op) {
    switch (op) {
      case pickle::kNone:
        push(std::monostate{});
        return true;
      case pickle::kNewTrue:
      case pickle::kNewFalse:
        push(op == pickle::kNewTrue);
        return true;
      case pickle::kBinInt:
        push(int64_t{take<int32_t>()});
        return true;
      case pickle::kBinInt1:
        push(int64_t{take<uint8_t>()});
        return true;
      case pickle::kBinInt2:
        push(int64_t{take<uint16_t>()});
        return true;
      case pickle::kLong1:
        push(take_long(take<uint8_t>()));
        return true;
      case pickle::kBinFloat:
        push(std::bit_cast<double>(__builtin_bswap64(take<uint64_t>())));  // the one big-endian
        return true;
      case pickle::kBinUnicode:
        push(take_text(take<uint32_t>()));
        return true;
      case pickle::kEmptyTuple:
        push(PickledTuple{});
        return true;
      case pickle::kEmptyList:
        push(PickledList{});
        return true;
      case pickle::kEmptyDict:
        push(PickledDict{});
        return true;
      default:
        return false;
    }
  }

  bool use_memo(uint8_t op) {
    switch (op) {
      case pickle::kBinPut:
        memo_[take<uint8_t>()] = top();
        return true;
      case pickle::kLongBinPut:
        memo_[take<uint32_t>()] = top();
        return true;
      case pickle::kBinGet:
        recall(take<uint8_t>());
        return true;
      case pickle::kLongBinGet:
        recall(take<uint32_t>());
        return true;
      default:
        return false;
    }
  }

  // Handles the opcodes that join values of the stack into one. Returns false for others.
  bool gather(uint8_t op) {
    switch (op) {
      case pickle::kMark:
        marks_.push_back(stack_.size());
        return true;
      case pickle::kTuple:
        push(PickledTuple{pop_to_mark()});
        return true;
      case pickle::kTuple1:
      case pickle::kTuple2:
      case pickle::kTuple3:
        push(PickledTuple{pop_last(op - pickle::kTuple1 + 1U)});
        return true;
      case pickle::kAppend:
        append(pop_last(1));
        return true;
      case pickle::kAppends:
        append(pop_to_mark());
        return true;
      case pickle::kSetItem:
        set_items(pop_last(2));
        return true;
      case pickle::kSetItems:
        set_items(pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  // What would run code in Python.
  void call(uint8_t op) {
    switch (op) {
      case pickle::kGlobal:
        return name_global();
      case pickle::kReduce:
        return reduce();
      case pickle::kBuild:
        pop();  // a state_dict's _metadata: versions of PyTorch's modules
        as<PickledDict>(top(), "sets the state of something else than a dict");
        return;
      case pickle::kBinPersId:
        return make_storage();
      default:
        refuse(fmt::format("its pickle has the opcode 0x{:02x}, which no state_dict needs", op));
    }
  }

  void name_global() {
    const std::string module = take_line();
    const std::string name = fmt::format("{}.{}", module, take_line());
    if (!is_known(name)) {
      refuse(
          fmt::format("it holds a '{}'; only tensors, numbers, text, dicts, lists and tuples are "
                      "read, and no code is run",
                      printable(name)));
    }
    push(PickledGlobal{name});
  }

  void reduce() {
    const PickleRef arguments = pop();
    const std::vector<PickleRef>& given =
        as<PickledTuple>(arguments, "calls something without a tuple").items;
    const std::string& name = as<PickledGlobal>(pop(), "calls what is not a name").name;
    if (name == pickle::kOrderedDict && given.empty()) return push(PickledDict{});
    if (name == pickle::kRebuildTensor && given.size() == 6) return push(make_tensor(given));
    if (name == pickle::kRebuildParameter && given.size() == 3) {
      return push(as<PickledTensor>(given[0], "makes a parameter of what is not a tensor"));
    }
    refuse(fmt::format("it calls {} with {} arguments", name, given.size()));
  }

  // storage, offset, size, stride, requires_grad, hooks
  PickledTensor make_tensor(const std::vector<PickleRef>& given) const {
    PickledTensor tensor{
        .storage = as<PickledStorage>(given[0], "makes a tensor without a storage"),
        .offset = as<int64_t>(given[1], "has a tensor without an offset"),
        .shape = integers(given[2]),
        .strides = integers(given[3])};
    if (tensor.shape.size() != tensor.strides.size())
      damaged("a tensor has other strides than axes");
    return tensor;
  }

  // ('storage', type, key, location, number of elements)
  void make_storage() {
    const std::vector<PickleRef>& given = as<PickledTuple>(pop(), "names no storage").items;
    constexpr size_t kParts = 5;
    if (given.size() != kParts || as<std::string>(given[0], "names no storage") != "storage") {
      damaged("it names no storage");
    }
    const std::string& type = as<PickledGlobal>(given[1], "has a storage of no type").name;
    if (!is_storage(type)) damaged("it has a storage of no type");
    const std::string& key = as<std::string>(given[2], "has a storage without a key");
    if (key.size() > kMaxName) damaged("a storage's key is too long");
    PickledStorage storage{.type = type.substr(kTorch.size()),
                           .key = key,
                           .elements = as<int64_t>(given[4], "has a storage without a size")};
    if (storage.elements < 0) damaged("a storage has a negative size");
    push(std::move(storage));
  }

  std::vector<int64_t> integers(PickleRef tuple) const {
    const std::vector<PickleRef>& items =
        as<PickledTuple>(tuple, "has a tensor without a shape").items;
    if (items.size() > kMaxAxes) {
      refuse(fmt::format("a tensor has {} axes, more than {}", items.size(), kMaxAxes));
    }
    std::vector<int64_t> values;
    values.reserve(items.size());
    for (const PickleRef item : items) {
      values.push_back(as<int64_t>(item, "has a shape of what is not a number"));
    }
    return values;
  }

  void append(const std::vector<PickleRef>& items) {
    as<PickledList>(top(), "appends to what is not a list");
    auto& list = std::get<PickledList>(result_.values[top()]);
    list.items.insert(list.items.end(), items.begin(), items.end());
  }

  void set_items(const std::vector<PickleRef>& items) {
    as<PickledDict>(top(), "sets an item of what is not a dict");
    if (items.size() % 2 != 0) damaged("a key has no value");
    auto& dict = std::get<PickledDict>(result_.values[top()]);
    for (size_t i = 0; i < items.size(); i += 2) dict.items.emplace_back(items[i], items[i + 1]);
  }

  void push(PickleValue value) {
    if (result_.values.size() >= kMaxValues) {
      damaged(fmt::format("it makes more than {} values", kMaxValues));
    }
    stack_.push_back(static_cast<PickleRef>(result_.values.size()));
    result_.values.push_back(std::move(value));
  }

  void recall(uint32_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) damaged("it recalls what it has not kept");
    stack_.push_back(found->second);
  }

  // A value above the last mark.
  PickleRef top() const {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) damaged("a value is missing");
    return stack_.back();
  }
  PickleRef pop() {
    const PickleRef value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<PickleRef> pop_last(size_t count) {
    std::vector<PickleRef> values(count);
    for (size_t i = count; i-- > 0;) values[i] = pop();
    return values;
  }
  std::vector<PickleRef> pop_to_mark() {
    if (marks_.empty()) damaged("a mark is missing");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleRef> values(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return values;
  }

  template <class T>
  const T& as(PickleRef ref, const char* otherwise) const {
    const T* value = std::get_if<T>(&result_.values[ref]);
    if (value == nullptr) damaged(std::string("it ") + otherwise);
    return *value;
  }

  template <class T>
  T take() {
    if (bytes_.size() - at_ < sizeof(T)) damaged("it is cut short");
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string take_text(size_t length) {
    if (bytes_.size() - at_ < length) damaged("it is cut short");
    std::string text(reinterpret_cast<const char*>(bytes_.data() + at_), length);
    at_ += length;
    return text;
  }
  std::string take_line() {
    std::string line;
    for (char c = take<char>(); c != '\n'; c = take<char>()) {
      if (line.size() == kMaxName) damaged("a name is too long");
      line += c;
    }
    return line;
  }
  // Two's complement, as many bytes as it needs.
  int64_t take_long(size_t length) {
    if (length > sizeof(int64_t)) refuse("it holds a number of more than 64 bits");
    const std::string bytes = take_text(length);
    const bool negative = !bytes.empty() && (static_cast<uint8_t>(bytes.back()) & 0x80U) != 0;
    int64_t value = negative ? -1 : 0;
    std::memcpy(&value, bytes.data(), length);
    return value;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    refuse_torch_file(file_, why, kSaveStateDict);
  }
  [[noreturn]] void damaged(const std::string& why) const {
    refuse_torch_file(
        file_, fmt::format("its pickle is damaged near byte {}: {}", at_, why), kAnotherCopy);
  }

  const std::span<const std::byte> bytes_;
  const std::string& file_;
  size_t at_ = 0;
  std::vector<PickleRef> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::unordered_map<uint32_t, PickleRef> memo_;
  Pickle result_;
};

}  // namespace

const PickleValue* Pickle::find(const PickledDict& dict, std::string_view key) const {
  const PickleValue* found = nullptr;
  for (const auto& [name, value] : dict.items) {
    const auto* text = std::get_if<std::string>(&at(name));
    if (text != nullptr && *text == key) found = &at(value);
  }
  return found;
}

std::string_view kind_of(const PickleValue& value) {
  constexpr std::array<std::string_view, std::variant_size_v<PickleValue>> kKinds = {"None",
                                                                                     "a bool",
                                                                                     "a number",
                                                                                     "a number",
                                                                                     "text",
                                                                                     "a name",
                                                                                     "a storage",
                                                                                     "a tensor",
                                                                                     "a tuple",
                                                                                     "a list",
                                                                                     "a dict"};
  return kKinds[value.index()];
}

Pickle read_pickle(std::span<const std::byte> bytes, const std::string& file) {
  return Unpickler(bytes, file).run();
}

}  // namespace lockstep::trainers
