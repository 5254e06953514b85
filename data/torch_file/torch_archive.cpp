#include "data/torch_file/torch_archive.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/safetensors_header.h"
#include "core/words.h"
#include "data/torch_file/pickle_reader.h"
#include "data/torch_file/pickled_tensor.h"
#include "data/torch_file/refuse.h"
#include "data/torch_file/zip_reader.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPickleMember = "/data.pkl";
constexpr uint64_t kMaxSmallMember = uint64_t{16} << 20;  // pickle and metadata
constexpr uint64_t kMaxSharing = 4;  // tensors may share memory, as tied weights do
constexpr uint64_t kMaxShared = uint64_t{16}
                                << 20;  // and expanded ones may be larger than the file
constexpr std::array kStateDicts = {"state_dict", "model", "model_state_dict"};

struct NamedTensor {
  std::string name;
  const PickledTensor* tensor = nullptr;
  Dtype dtype = Dtype::kF32;
};

std::optional<Dtype> dtype_of(std::string_view storage) {
  constexpr std::array<std::pair<std::string_view, Dtype>, 6> kTypes = {
      {{"FloatStorage", Dtype::kF32},
       {"HalfStorage", Dtype::kF16},
       {"BFloat16Storage", Dtype::kBF16},
       {"LongStorage", Dtype::kI64},
       {"IntStorage", Dtype::kI32},
       {"ByteStorage", Dtype::kU8}}};
  const auto* found =
      std::ranges::find(kTypes, storage, &std::pair<std::string_view, Dtype>::first);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

// A zip file of torch.save.
class TorchArchive {
 public:
  explicit TorchArchive(const fs::path& path) : zip_(path), root_(find_root()) {
    if (zip_.members().contains(root_ + "/constants.pkl")) {
      refuse("it is a TorchScript archive: code beside weights",
             "torch.save(torch.jit.load(FILE).state_dict(), OTHER_FILE) in PyTorch");
    }
    if (has("/byteorder") && text_of("/byteorder") != "little") {
      refuse("its numbers are not little-endian", kAnotherCopy);
    }
  }

  Safetensors read() const {
    const std::vector<std::byte> bytes = small_member("/data.pkl");
    const Pickle pickle = read_pickle(bytes, zip_.file());
    Safetensors content;
    std::map<std::string, int64_t> counters;
    const std::vector<NamedTensor> tensors = tensors_of(pickle, counters);
    content.tensors = read_tensors(tensors);
    for (const auto& [name, count] : counters) {
      Tensor counter = Tensor::zeros(Shape(), Dtype::kI64);
      *counter.data<int64_t>() = count;
      content.tensors.emplace(name, counter);
    }
    content.metadata = metadata();
    return content;
  }

 private:
  // The folder that all members lie in.
  std::string find_root() const {
    std::vector<std::string> roots;
    for (const auto& [name, member] : zip_.members()) {
      if (!name.ends_with(kPickleMember)) continue;
      roots.push_back(name.substr(0, name.size() - kPickleMember.size()));
    }
    if (roots.size() == 1) return roots.front();
    refuse(roots.empty() ? "it is a zip file, but none of torch.save: it has no data.pkl"
                         : "it is a zip file with more than one data.pkl",
           kSaveStateDict);
  }

  bool has(const std::string& name) const { return zip_.members().contains(root_ + name); }

  std::vector<std::byte> small_member(const std::string& name) const {
    const uint64_t size = zip_.members().at(root_ + name).size;
    if (size > kMaxSmallMember) {
      refuse(fmt::format("its {} has {} bytes, above {}", name.substr(1), size, kMaxSmallMember),
             kSaveStateDict);
    }
    std::vector<std::byte> bytes(size);
    zip_.read(root_ + name, bytes);
    return bytes;
  }

  std::string text_of(const std::string& name) const {
    const std::vector<std::byte> bytes = small_member(name);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::map<std::string, std::string> metadata() const {
    if (!has(std::string(kMetadataMember))) return {};
    try {
      return nlohmann::json::parse(text_of(std::string(kMetadataMember)));
    } catch (const nlohmann::json::exception&) {
      refuse(fmt::format("its {} is damaged", kMetadataMember.substr(1)), kAnotherCopy);
    }
  }

  // A module keeps what it likes under this name, and PyTorch's networks keep nothing.
  static bool is_extra_state(std::string_view name) {
    return name.substr(name.rfind('.') + 1) == "_extra_state";
  }

  const PickledDict& state_dict_of(const Pickle& pickle) const {
    const PickleValue& root = pickle.at(pickle.root);
    const auto* dict = std::get_if<PickledDict>(&root);
    if (dict == nullptr) {
      refuse(fmt::format("it holds {}, not a state_dict, and no code is run", pickle.kind_of(root)),
             kSaveStateDict);
    }
    const PickleValue* module = nullptr;
    for (const char* key : kStateDicts) {
      const PickleValue* inner = pickle.find(*dict, key);
      if (inner == nullptr) continue;
      if (const auto* found = std::get_if<PickledDict>(inner)) return *found;
      if (std::holds_alternative<PickledObject>(*inner)) module = inner;
    }
    if (module == nullptr) return *dict;
    refuse(fmt::format("it holds {} in place of a state_dict, and no code is run",
                       pickle.kind_of(*module)),
           kSaveStateDict);
  }

  // The state_dict's, whose names are fit to be printed and written. A counter may be a number.
  std::vector<NamedTensor> tensors_of(const Pickle& pickle,
                                      std::map<std::string, int64_t>& counters) const {
    std::vector<NamedTensor> tensors;
    for (const auto& [key, value] : state_dict_of(pickle).items) {
      const auto* name = std::get_if<std::string>(&pickle.at(key));
      if (name == nullptr || !is_tensor_name(*name)) {
        refuse(fmt::format("a tensor has the name '{}'", name == nullptr ? "" : printable(*name)),
               kSaveStateDict);
      }
      const bool is_none = std::holds_alternative<std::monostate>(pickle.at(value));
      if (is_extra_state(*name) || is_none) continue;
      const auto* count = std::get_if<int64_t>(&pickle.at(value));
      if (count != nullptr && name->ends_with(".num_batches_tracked")) {
        counters[*name] = *count;
        continue;
      }
      const auto* tensor = std::get_if<PickledTensor>(&pickle.at(value));
      if (tensor == nullptr) {
        refuse(fmt::format("its '{}' is {}, not a tensor", *name, pickle.kind_of(pickle.at(value))),
               kSaveStateDict);
      }
      tensors.push_back({*name, tensor, check(*name, *tensor)});
    }
    if (tensors.empty()) refuse("it holds no tensor", kSaveStateDict);
    return tensors;
  }

  std::map<std::string, Tensor> read_tensors(std::vector<NamedTensor> tensors) const {
    check_total(tensors);
    // Each storage is read once, however many tensors share it.
    std::ranges::stable_sort(
        tensors, {}, [](const NamedTensor& named) { return named.tensor->storage.key; });
    std::map<std::string, Tensor> read;
    std::vector<std::byte> storage;
    const std::string* key = nullptr;
    for (const auto& [name, tensor, dtype] : tensors) {
      if (key == nullptr || *key != tensor->storage.key) {
        key = &tensor->storage.key;
        const std::string member = storage_of(*tensor);
        storage.resize(zip_.members().at(member).size);
        zip_.read(member, storage);
      }
      Tensor target = Tensor::empty(Shape(tensor->shape), dtype);
      gather(*tensor, storage, target);
      if (!read.emplace(name, target).second) {
        refuse(fmt::format("it has '{}' twice", name), kAnotherCopy);
      }
    }
    return read;
  }

  std::string storage_of(const PickledTensor& tensor) const {
    return fmt::format("{}/data/{}", root_, tensor.storage.key);
  }

  // A tensor is then no larger than its data in the file, whatever the file claims.
  Dtype check(const std::string& name, const PickledTensor& tensor) const {
    const PickledStorage& storage = tensor.storage;
    const std::optional<Dtype> dtype = dtype_of(storage.type);
    if (!dtype) {
      refuse(fmt::format("'{}' has a {}; f32, f16, bf16, u8, i32 and i64 are read",
                         name,
                         printable(storage.type)),
             "torch.save(model.float().state_dict(), FILE) in PyTorch");
    }
    const auto member = zip_.members().find(storage_of(tensor));
    if (member == zip_.members().end()) {
      refuse(fmt::format("the bytes of '{}', data/{}, are missing", name, printable(storage.key)),
             kAnotherCopy);
    }
    const uint64_t size = member->second.size;
    if (size % size_of(*dtype) != 0 ||
        size / size_of(*dtype) != static_cast<uint64_t>(storage.elements)) {
      refuse(fmt::format(
                 "'{}' claims {} elements in a storage of {} bytes", name, storage.elements, size),
             kAnotherCopy);
    }
    if (tensor.shape.size() > Shape::kMaxRank) {
      refuse(
          fmt::format("'{}' has {} axes, more than {}", name, tensor.shape.size(), Shape::kMaxRank),
          kSaveStateDict);
    }
    if (!elements_of(tensor)) {
      refuse(
          fmt::format("'{}' claims elements that its storage of {} does not have, or far more than "
                      "it has",
                      name,
                      storage.elements),
          "tensor.contiguous() before torch.save");
    }
    if (tensor.negated &&
        (*dtype == Dtype::kU8 || *dtype == Dtype::kI32 || *dtype == Dtype::kI64)) {
      refuse(fmt::format("'{}' is a negative view of integers", name),
             "tensor.resolve_neg() before torch.save");
    }
    return *dtype;
  }

  void check_total(const std::vector<NamedTensor>& tensors) const {
    uint64_t held = 0;
    for (const auto& [name, member] : zip_.members()) held += member.size;
    uint64_t claimed = 0;
    for (const auto& [name, tensor, dtype] : tensors) {
      claimed += static_cast<uint64_t>(elements_of(*tensor).value_or(0)) * size_of(dtype);
      if (claimed / kMaxSharing > held && claimed > kMaxShared) {
        refuse("its tensors claim the same bytes over and over", kSaveStateDict);
      }
    }
  }

  [[noreturn]] void refuse(const std::string& why, const std::string& hint) const {
    refuse_torch_file(zip_.file(), why, hint);
  }

  const ZipReader zip_;
  const std::string root_;
};

}  // namespace

Safetensors read_torch_archive(const fs::path& path) {
  return TorchArchive(path).read();
}

}  // namespace lockstep::data
