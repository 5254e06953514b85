#include "trainers/checkpoint/state_tensors.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "core/digest.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/transfer.h"

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

}  // namespace lockstep::trainers
