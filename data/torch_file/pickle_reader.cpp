#include "data/torch_file/pickle_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <unordered_map>

#include <fmt/core.h>

#include "core/words.h"
#include "data/torch_file/pickle_calls.h"
#include "data/torch_file/pickle_format.h"
#include "data/torch_file/refuse.h"

namespace lockstep::data {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr size_t kMaxValues = 1'000'000;

// The stack machine that runs a pickle.
class Unpickler {
 public:
  Unpickler(std::span<const std::byte> bytes, const std::string& file)
      : bytes_(bytes), file_(file) {}

  Pickle run() {
    try {
      return run_all();
    } catch (const PickleDamage& damage) {
      damaged("it " + damage.why);
    }
  }

 private:
  Pickle run_all() {
    if (bytes_.size() > kMaxBytes) {
      damaged(fmt::format("it has {} bytes, above {}", bytes_.size(), kMaxBytes));
    }
    if (take<uint8_t>() != pickle::kProto) damaged("it does not begin with a protocol");
    const auto protocol = take<uint8_t>();
    if (protocol < pickle::kProtocol || protocol > pickle::kLastProtocol) {
      refuse(fmt::format("its pickle has protocol {}, {} to {} are read",
                         protocol,
                         pickle::kProtocol,
                         pickle::kLastProtocol));
    }
    for (uint8_t op = take<uint8_t>(); op != pickle::kStop; op = take<uint8_t>()) {
      if (!push_constant(op) && !push_text(op) && !use_memo(op) && !gather(op)) call(op);
    }
    result_.root = pop();
    if (!stack_.empty() || !marks_.empty()) damaged("values are left over");
    return std::move(result_);
  }

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
      case pickle::kLong4:
        push(take_long(take<uint32_t>()));
        return true;
      case pickle::kBinFloat:
        push(std::bit_cast<double>(__builtin_bswap64(take<uint64_t>())));  // the one big-endian
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
      case pickle::kEmptySet:
        push(PickledOther{"a set"});
        return true;
      default:
        return false;
    }
  }

  bool push_text(uint8_t op) {
    switch (op) {
      case pickle::kShortBinString:  // of Python 2
      case pickle::kShortBinUnicode:
        push(take_text(take<uint8_t>()));
        return true;
      case pickle::kBinString:
      case pickle::kBinUnicode:
        push(take_text(take<uint32_t>()));
        return true;
      case pickle::kBinUnicode8:
        push(take_text(take<uint64_t>()));
        return true;
      case pickle::kShortBinBytes:
        return skip_bytes(take<uint8_t>());
      case pickle::kBinBytes:
        return skip_bytes(take<uint32_t>());
      case pickle::kBinBytes8:
      case pickle::kByteArray8:
        return skip_bytes(take<uint64_t>());
      default:
        return false;
    }
  }

  bool use_memo(uint8_t op) {
    switch (op) {
      case pickle::kMemoize:
        if (memo_.size() >= kMaxValues) damaged("it keeps too many values");
        memo_[static_cast<uint32_t>(memo_.size())] = top();
        return true;
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
      case pickle::kAddItems:
        pop_to_mark();
        top();
        return true;
      case pickle::kFrozenSet:
        pop_to_mark();
        push(PickledOther{"a set"});
        return true;
      case pickle::kPop:
        pop();
        return true;
      case pickle::kPopMark:
        pop_to_mark();
        return true;
      case pickle::kFrame:
        take<uint64_t>();  // where another opcode sequence begins; it changes no value
        return true;
      default:
        return false;
    }
  }

  // Handles the opcodes that would run code in Python.
  void call(uint8_t op) {
    switch (op) {
      case pickle::kGlobal: {
        const std::string module = take_line();
        return name_global(module, take_line());
      }
      case pickle::kStackGlobal: {
        const std::vector<PickleRef> names = pop_last(2);
        return name_global(as<std::string>(result_, names[0], "has a name that is not text"),
                           as<std::string>(result_, names[1], "has a name that is not text"));
      }
      case pickle::kReduce:
      case pickle::kNewObject:
        return reduce();
      case pickle::kNewObjectKeywords:
        pop();
        return reduce();
      case pickle::kBuild:
        // A state_dict's _metadata, versions of PyTorch's modules, or the attributes of an object.
        pop();
        top();
        return;
      case pickle::kBinPersId:
        return push(named_storage(result_, pop()));
      default:
        refuse(
            fmt::format("its pickle has the opcode 0x{:02x}, which torch.save does not write", op));
    }
  }

  void name_global(const std::string& module, const std::string& name) {
    if (module.size() + name.size() > kMaxPickledName) damaged("a name is too long");
    push(PickledGlobal{fmt::format("{}.{}", module, name)});
  }

  void reduce() {
    const PickleRef arguments = pop();
    const PickleRef callee = pop();
    push(result_of_call(result_, callee, arguments));
  }

  void append(const std::vector<PickleRef>& items) {
    if (auto* list = items_of<PickledList>("appends to what is not a list")) {
      list->items.insert(list->items.end(), items.begin(), items.end());
    }
  }

  void set_items(const std::vector<PickleRef>& items) {
    if (items.size() % 2 != 0) damaged("a key has no value");
    auto* dict = items_of<PickledDict>("sets an item of what is not a dict");
    if (dict == nullptr) return;
    for (size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
  }

  // The value on top; null for an object that keeps its items to itself.
  template <class T>
  T* items_of(const char* otherwise) {
    PickleValue& value = result_.values[top()];
    if (std::holds_alternative<PickledObject>(value)) return nullptr;
    if (!std::holds_alternative<T>(value)) throw PickleDamage{otherwise};
    return &std::get<T>(value);
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

  // Returns the last value, which must be above the last mark.
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
  T take() {
    if (bytes_.size() - at_ < sizeof(T)) damaged("it is cut short");
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string take_text(uint64_t length) {
    if (bytes_.size() - at_ < length) damaged("it is cut short");
    std::string text(reinterpret_cast<const char*>(bytes_.data() + at_), length);
    at_ += length;
    return text;
  }
  bool skip_bytes(uint64_t length) {
    if (bytes_.size() - at_ < length) damaged("it is cut short");
    at_ += length;
    push(PickledOther{"bytes"});
    return true;
  }
  std::string take_line() {
    std::string line;
    for (char c = take<char>(); c != '\n'; c = take<char>()) {
      if (line.size() == kMaxPickledName) damaged("a name is too long");
      line += c;
    }
    return line;
  }
  // Two's complement, as many bytes as it needs.
  PickleValue take_long(size_t length) {
    const std::string bytes = take_text(length);
    if (length > sizeof(int64_t)) return PickledOther{"a number of more than 64 bits"};
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

std::string Pickle::kind_of(const PickleValue& value) const {
  if (const auto* other = std::get_if<PickledOther>(&value)) return std::string(other->kind);
  const auto* name = std::get_if<PickledGlobal>(&value);
  if (const auto* object = std::get_if<PickledObject>(&value)) {
    name = &std::get<PickledGlobal>(at(object->type));
  }
  if (name != nullptr) return fmt::format("a '{}'", printable(name->name));
  constexpr std::array kKinds = {"None",
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

}  // namespace lockstep::data
