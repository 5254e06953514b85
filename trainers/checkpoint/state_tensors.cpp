#include "trainers/checkpoint/state_tensors.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/digest.h"
#include "core/error.h"
#include "core/transfer.h"
#include "core/words.h"
#include "trainers/config/run_files.h"
#include "trainers/torch_file/torch_file.h"

namespace lockstep::trainers {
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

constexpr std::string_view kPrefix = "module.";

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
void widen(std::span<const nn::StateEntry> entries, FileTensors& tensors) {
  for (const nn::StateEntry& entry : entries) {
    const auto found = tensors.find(entry.name);
    if (found == tensors.end() || entry.tensor.dtype() != Dtype::kF32) continue;
    Tensor& tensor = found->second;
    if (tensor.device() == Device::kDry) {
      const bool narrow = tensor.dtype() == Dtype::kF16 || tensor.dtype() == Dtype::kBF16;
      if (narrow) tensor = Tensor::empty(tensor.shape(), Dtype::kF32, Device::kDry);
      continue;
    }
    if (tensor.dtype() == Dtype::kF16) tensor = widened<Half>(tensor);
    if (tensor.dtype() == Dtype::kBF16) tensor = widened<BFloat16>(tensor);
  }
}

}  // namespace

Safetensors read_weights(const fs::path& path) {
  std::error_code no_run;
  const fs::path newest = path / kCheckpointsFolder / kLastFile;
  const fs::path& file = fs::exists(newest, no_run) ? newest : path;
  try {
    return is_torch_file(file) ? read_torch_file(file) : read_safetensors(file);
  } catch (const EnvironmentError& error) {
    throw CheckpointError(error.what(), error.why(), error.hint(), error.remedy());
  }
}

FileTensors without_module_prefix(FileTensors tensors) {
  const bool prefixed = std::ranges::all_of(
      tensors, [](const auto& tensor) { return tensor.first.starts_with(kPrefix); });
  if (!prefixed) return tensors;
  FileTensors stripped;
  for (auto& [name, tensor] : tensors) stripped[name.substr(kPrefix.size())] = std::move(tensor);
  return stripped;
}

namespace {

// The tensors of a file that a network takes, and their places in it.
struct PretrainedFit {
  std::vector<nn::StateEntry> entries;
  FileTensors tensors;
  std::optional<std::string> fresh;  // load_pretrained()'s result
};

// Errors: those of load_pretrained(). Tensors on the dry device tell it as well.
PretrainedFit fit(const fs::path& file,
                  FileTensors tensors,
                  nn::Module& model,
                  Classifier classifier) {
  tensors = without_module_prefix(std::move(tensors));
  std::vector<nn::StateEntry> entries = model.state();
  drop_absent_counters(entries, tensors);
  widen(entries, tensors);
  const std::string head = classifier_of(model);
  const std::optional<int64_t> classes = other_class_count(entries, tensors, head);
  std::string hint = "the --arch that the file was made with, names as in torchvision or timm";
  std::optional<std::string> fresh;
  if (classes && classifier == Classifier::kMayStartFresh) {
    fresh = head;
    std::erase_if(entries, [&](const auto& entry) { return entry.name.starts_with(head + "."); });
    std::erase_if(tensors,
                  [&](const auto& tensor) { return tensor.first.starts_with(head + "."); });
  } else if (classes) {
    hint = fmt::format("--class-names FILE: the class folders' names of its {} outputs, one a line",
                       *classes);
  }
  const std::vector<std::string> found = mismatches(entries, tensors);
  if (!found.empty()) {
    throw CheckpointError(
        fmt::format("{} does not fit the network", file.string()), first_of(found), hint);
  }
  return {std::move(entries), std::move(tensors), std::move(fresh)};
}

}  // namespace

std::optional<std::string> load_pretrained(const fs::path& file,
                                           FileTensors tensors,
                                           nn::Module& model,
                                           Classifier classifier) {
  const PretrainedFit found = fit(file, std::move(tensors), model, classifier);
  copy_into(found.entries, found.tensors);
  return found.fresh;
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

}  // namespace lockstep::trainers
