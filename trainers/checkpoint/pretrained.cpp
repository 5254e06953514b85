#include "trainers/checkpoint/pretrained.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/error.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "module.";

// PyTorch before 0.4.1 had no such counter, and many a file lacks it.
void drop_absent_counters(std::vector<nn::StateEntry>& entries, const FileTensors& tensors) {
  std::erase_if(entries, [&](const nn::StateEntry& entry) {
    return entry.name.ends_with(".num_batches_tracked") && !tensors.contains(entry.name);
  });
}

// The module of the last parameter: "fc".
std::string classifier_of(const nn::Module& model) {
  const std::string& last = model.named_parameters().back().name;
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

}  // namespace

Safetensors read_weights(const fs::path& file) {
  try {
    return read_safetensors(file);
  } catch (const EnvironmentError& error) {
    throw CheckpointError(error.what(), error.why(), error.hint());
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

std::optional<std::string> load_pretrained(const fs::path& file,
                                           FileTensors tensors,
                                           nn::Module& model,
                                           Classifier classifier) {
  tensors = without_module_prefix(std::move(tensors));
  std::vector<nn::StateEntry> entries = model.state();
  drop_absent_counters(entries, tensors);
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
    hint = fmt::format("--num-classes {} to evaluate all of the file's classes", *classes);
  }
  const std::vector<std::string> problems = mismatches(entries, tensors);
  if (!problems.empty()) {
    throw CheckpointError(
        fmt::format("{} does not fit the network", file.string()), first_of(problems), hint);
  }
  copy_into(entries, tensors);
  return fresh;
}

}  // namespace lockstep::trainers
