#include "engine/state/state_tensors.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/digest.h"
#include "core/error.h"
#include "core/transfer.h"
#include "core/words.h"
#include "data/torch_file/torch_file.h"

namespace lockstep {
namespace {

std::string mismatch(const nn::StateEntry& entry, const Tensor& tensor) {
  if (tensor.shape() != entry.file_shape) {
    return fmt::format("{} has shape {}, expected {}",
                       entry.name,
                       to_string(tensor.shape()),
                       to_string(entry.file_shape));
  }
  if (tensor.dtype() != entry.tensor.dtype()) {
    return fmt::format("{} is {}, expected {}",
                       entry.name,
                       name_of(tensor.dtype()),
                       name_of(entry.tensor.dtype()));
  }
  return {};
}

}  // namespace

FileTensors file_tensors(std::span<const nn::StateEntry> entries) {
  FileTensors tensors;
  for (const nn::StateEntry& entry : entries) {
    tensors.emplace(entry.name, to_row_major(to_cpu(entry.tensor)).view(entry.file_shape));
  }
  return tensors;
}

uint64_t state_digest(const nn::Module& model) {
  return digest_of_row_major(file_tensors(model.state()));
}

std::vector<std::string> mismatches(std::span<const nn::StateEntry> entries,
                                    const FileTensors& tensors) {
  std::vector<std::string> found;
  std::set<std::string> known;
  for (const nn::StateEntry& entry : entries) {
    known.insert(entry.name);
    const auto tensor = tensors.find(entry.name);
    const std::string problem =
        tensor == tensors.end() ? entry.name + " is missing" : mismatch(entry, tensor->second);
    if (!problem.empty()) found.push_back(problem);
  }
  for (const auto& [name, tensor] : tensors) {
    if (!known.contains(name)) found.push_back(printable(name) + " is not expected");
  }
  return found;
}

std::string first_of(const std::vector<std::string>& mismatches) {
  constexpr size_t kShown = 3;
  const std::span<const std::string> shown =
      std::span(mismatches).first(std::min(kShown, mismatches.size()));
  std::string text = fmt::format("{}", fmt::join(shown, "; "));
  if (mismatches.size() > kShown) text += fmt::format("; and {} more", mismatches.size() - kShown);
  return text;
}

void copy_into(std::span<const nn::StateEntry> entries, const FileTensors& tensors) {
  for (const nn::StateEntry& entry : entries) {
    const auto found = tensors.find(entry.name);
    if (found == tensors.end()) continue;
    const Tensor values = from_row_major(found->second.view(entry.tensor.shape()));
    Tensor target = entry.tensor;
    overwrite(values, target);
  }
}

void load_state(std::span<const nn::StateEntry> entries,
                const FileTensors& tensors,
                const std::string& problem,
                const std::string& hint) {
  const std::vector<std::string> found = mismatches(entries, tensors);
  if (!found.empty()) throw CheckpointError(problem, first_of(found), hint);
  copy_into(entries, tensors);
}

namespace {

namespace fs = std::filesystem;

// DataParallel and AveragedModel put the first before all names, torch.compile the second.
constexpr std::string_view kWrappers[] = {"module.", "_orig_mod."};

// AveragedModel's counter, which is no part of the network.
bool is_average_count(std::string_view name) {
  return name.substr(name.rfind('.') + 1) == "n_averaged";
}

// Drops the prefix where it is there, and AveragedModel's counter. Returns nothing where two
// tensors would get the same name.
std::optional<FileTensors> without_prefix(const FileTensors& tensors, std::string_view prefix) {
  FileTensors stripped;
  for (const auto& [name, tensor] : tensors) {
    if (is_average_count(name)) continue;
    const size_t begin = name.starts_with(prefix) ? prefix.size() : 0;
    if (!stripped.emplace(name.substr(begin), tensor).second) return std::nullopt;
  }
  return stripped;
}

// Returns what comes before most of the network's names in the file; empty: nothing does. Errors:
// CheckpointError where there are two such prefixes.
std::string prefix_of(const fs::path& file,
                      std::span<const nn::StateEntry> entries,
                      const FileTensors& tensors) {
  std::set<std::string_view> known;
  for (const nn::StateEntry& entry : entries) known.insert(entry.name);
  std::map<std::string_view, size_t> matches;  // by prefix
  for (const auto& [name, tensor] : tensors) {
    const std::string_view whole = name;
    size_t begin = 0;
    do {
      if (known.contains(whole.substr(begin))) ++matches[whole.substr(0, begin)];
      begin = whole.find('.', begin) + 1;
    } while (begin != 0);
  }
  std::vector<std::string_view> best;
  for (const auto& [prefix, count] : matches) {
    const size_t most = best.empty() ? known.size() / 2 + 1 : matches.at(best.front());
    if (count > most) best.clear();
    if (count >= most) best.push_back(prefix);
  }
  if (best.empty()) return {};
  if (best.size() > 1 && !best.front().empty()) {
    throw CheckpointError(
        fmt::format("{} holds weights of the network more than once", file.string()),
        fmt::format("its names fit after '{}' and after '{}'", best[0], best[1]),
        fmt::format("torch.save({{k.removeprefix('{0}'): v for k, v in state_dict.items() if "
                    "k.startswith('{0}')}}, OTHER_FILE)",
                    best[0]));
  }
  return std::string(best.front());
}

// PyTorch before 0.4.1 had no such counter, and many files lack it.
void drop_absent_counters(std::vector<nn::StateEntry>& entries, const FileTensors& tensors) {
  std::erase_if(entries, [&](const nn::StateEntry& entry) {
    return entry.name.ends_with(".num_batches_tracked") && !tensors.contains(entry.name);
  });
}

// The module of the last parameter: "fc".
std::string classifier_of(const nn::Module& model) {
  const std::string last = model.named_parameters().back().name;
  return last.substr(0, last.rfind('.'));
}

bool differs_in_classes_only(const nn::StateEntry& entry, const FileTensors& tensors) {
  const auto found = tensors.find(entry.name);
  if (found == tensors.end() || found->second.shape().rank() != entry.file_shape.rank())
    return false;
  const Shape& shape = found->second.shape();
  for (int axis = 1; axis < shape.rank(); ++axis) {
    if (shape[axis] != entry.file_shape[axis]) return false;
  }
  return shape[0] != entry.file_shape[0];
}

// Where weight and bias have the file's class count instead of the model's.
std::optional<int64_t> other_class_count(std::span<const nn::StateEntry> entries,
                                         const FileTensors& tensors,
                                         const std::string& classifier) {
  std::optional<int64_t> classes;
  for (const nn::StateEntry& entry : entries) {
    if (!entry.name.starts_with(classifier + ".")) continue;
    if (!differs_in_classes_only(entry, tensors)) return std::nullopt;
    classes = tensors.at(entry.name).shape()[0];
  }
  return classes;
}

template <class T>
Tensor widened(const Tensor& narrow) {
  Tensor wide = Tensor::empty(narrow.shape(), Dtype::kF32);
  std::ranges::transform(narrow.span<T>(), wide.span<float>().begin(), [](T value) {
    return static_cast<float>(value);
  });
  return wide;
}

// f32 holds every 16-bit value; PyTorch's load_state_dict() converts them too.
void widen(Tensor& tensor) {
  if (tensor.device() == Device::kDry) {
    const bool narrow = tensor.dtype() == Dtype::kF16 || tensor.dtype() == Dtype::kBF16;
    if (narrow) tensor = Tensor::empty(tensor.shape(), Dtype::kF32, Device::kDry);
    return;
  }
  if (tensor.dtype() == Dtype::kF16) tensor = widened<Half>(tensor);
  if (tensor.dtype() == Dtype::kBF16) tensor = widened<BFloat16>(tensor);
}

// The number in a tensor of one element; nothing where a 64-bit integer cannot hold it.
std::optional<int64_t> count_in(Tensor tensor) {
  if (tensor.dtype() == Dtype::kI64) return *tensor.data<int64_t>();
  if (tensor.dtype() == Dtype::kI32) return *tensor.data<int32_t>();
  if (tensor.dtype() == Dtype::kU8) return *tensor.data<uint8_t>();
  widen(tensor);
  const float value = *tensor.data<float>();
  constexpr float kBound = 0x1p63F;
  if (!(value >= -kBound && value < kBound)) return std::nullopt;
  return static_cast<int64_t>(value);
}

// A counter may have any type, and one axis, as PyTorch's load_state_dict() takes it.
void read_counter(const fs::path& file, const std::string& name, Tensor& tensor) {
  if (tensor.shape() != Shape() && tensor.shape() != Shape{1}) return;
  if (tensor.device() == Device::kDry) {
    tensor = Tensor::empty(Shape(), Dtype::kI64, Device::kDry);
    return;
  }
  const std::optional<int64_t> count = count_in(tensor);
  if (!count) {
    throw CheckpointError(fmt::format("{} does not fit the network", file.string()),
                          fmt::format("{} is no integer of 64 bits", name),
                          "the weights of another step, or without its counters");
  }
  tensor = Tensor::zeros(Shape(), Dtype::kI64);
  *tensor.data<int64_t>() = *count;
}

void convert(const fs::path& file, std::span<const nn::StateEntry> entries, FileTensors& tensors) {
  for (const nn::StateEntry& entry : entries) {
    const auto found = tensors.find(entry.name);
    if (found == tensors.end()) continue;
    const bool is_counter = entry.tensor.dtype() == Dtype::kI64 && entry.file_shape == Shape();
    if (entry.tensor.dtype() == Dtype::kF32) widen(found->second);
    if (is_counter) read_counter(file, entry.name, found->second);
  }
}

}  // namespace

FileTensors without_wrappers(FileTensors tensors) {
  const auto is_before_all = [&](std::string_view prefix) {
    return !tensors.empty() && std::ranges::all_of(tensors, [&](const auto& tensor) {
      return tensor.first.starts_with(prefix) || is_average_count(tensor.first);
    });
  };
  for (const auto* wrapper = std::begin(kWrappers); wrapper != std::end(kWrappers);) {
    std::optional<FileTensors> stripped;
    if (is_before_all(*wrapper)) stripped = without_prefix(tensors, *wrapper);
    wrapper = stripped ? std::begin(kWrappers) : wrapper + 1;
    if (stripped) tensors = *std::move(stripped);
  }
  return tensors;
}

namespace {

// The tensors of a file that a network takes, and their places in it.
struct PretrainedFit {
  std::vector<nn::StateEntry> entries;
  FileTensors tensors;
  LoadedWeights result;
};

// The first mismatches and, where names are missing, what the file has in their place.
std::string describe_mismatches(const std::vector<std::string>& found,
                                std::span<const nn::StateEntry> entries,
                                const FileTensors& tensors) {
  std::vector<std::string> others;
  for (const auto& [name, tensor] : tensors) {
    const bool known = std::ranges::any_of(entries, [&](const auto& e) { return e.name == name; });
    if (!known) others.push_back(printable(name));
  }
  constexpr size_t kMany = 3;  // of which first_of() shows no other names
  if (others.empty() || found.size() - others.size() < kMany) return first_of(found);
  return fmt::format("{}; the file has {}", first_of(found), first_of(others));
}

// Errors: those of load_pretrained(). Tensors on the dry device tell it as well.
PretrainedFit fit(const fs::path& file,
                  FileTensors tensors,
                  nn::Module& model,
                  Classifier classifier) {
  std::vector<nn::StateEntry> entries = model.state();
  LoadedWeights result{.fresh = {}, .prefix = prefix_of(file, entries, tensors)};
  if (std::optional<FileTensors> stripped = without_prefix(tensors, result.prefix)) {
    tensors = *std::move(stripped);
  }
  drop_absent_counters(entries, tensors);
  convert(file, entries, tensors);
  const std::string head = classifier_of(model);
  const std::optional<int64_t> classes = other_class_count(entries, tensors, head);
  std::string hint = "the network that the file was made with, names as in torchvision or timm";
  Remedy remedy = Remedy::kNetwork;
  if (classes && classifier == Classifier::kMayStartFresh) {
    result.fresh = head;
    std::erase_if(entries, [&](const auto& entry) { return entry.name.starts_with(head + "."); });
    std::erase_if(tensors,
                  [&](const auto& tensor) { return tensor.first.starts_with(head + "."); });
  } else if (classes) {
    hint = fmt::format("the class folders' names of its {} outputs", *classes);
    remedy = Remedy::kClassNames;
  }
  const std::vector<std::string> found = mismatches(entries, tensors);
  if (!found.empty()) {
    throw CheckpointError(fmt::format("{} does not fit the network", file.string()),
                          describe_mismatches(found, entries, tensors),
                          hint,
                          remedy);
  }
  return {std::move(entries), std::move(tensors), std::move(result)};
}

}  // namespace

LoadedWeights load_pretrained(const fs::path& file,
                              FileTensors tensors,
                              nn::Module& model,
                              Classifier classifier) {
  PretrainedFit found = fit(file, std::move(tensors), model, classifier);
  copy_into(found.entries, found.tensors);
  return std::move(found.result);
}

void check_pretrained(const fs::path& file,
                      const SafetensorsHeader& header,
                      nn::Module& model,
                      Classifier classifier) {
  FileTensors tensors;
  for (const auto& [name, entry] : header.tensors) {
    tensors[name] = Tensor::empty(entry.shape, entry.dtype, Device::kDry);
  }
  fit(file, std::move(tensors), model, classifier);
}

}  // namespace lockstep
