#include "inspect/weights/export_weights.h"

#include <optional>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "core/error.h"
#include "core/safetensors_header.h"
#include "core/words.h"
#include "data/torch_file/torch_file.h"
#include "engine/state/state_tensors.h"
#include "engine/state/weights_file.h"
#include "inspect/weights/export_weights.h"
#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/config/file_json.h"
#include "trainers/config/run_files.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScaler = "grad_scaler";
// Keys of a checkpoint's metadata that also apply to its weights alone.
constexpr const char* kKept[] = {kVersionKey, "program", "arch", "evaluation", kScaler};

bool is_for_torch(const fs::path& to) {
  const std::string extension = to.extension().string();
  if (extension == ".safetensors") return false;
  if (extension == ".pt" || extension == ".pth" || extension == ".tar") return true;
  throw UsageError(fmt::format("{} names no format of weights", to.string()),
                   "the file's extension selects it",
                   "OUT.pt or OUT.pth for torch.load, or OUT.safetensors");
}

FileTensors renamed(FileTensors tensors, const std::string& prefix) {
  FileTensors result;
  for (auto& [name, tensor] : without_wrappers(std::move(tensors))) {
    std::string full = prefix + name;
    if (!is_tensor_name(full)) {
      throw UsageError(fmt::format("'{}' is not a name of a tensor", printable(full)),
                       "names have letters, digits and any of _ . - /",
                       "--prefix module., as DistributedDataParallel has it");
    }
    result.emplace(std::move(full), std::move(tensor));
  }
  return result;
}

// The part that GradScaler knows: the run counts more.
std::optional<data::ScalerState> scaler_of(const std::map<std::string, std::string>& metadata,
                                           const std::string& file) {
  const auto found = metadata.find(kScaler);
  if (found == metadata.end()) return std::nullopt;
  try {
    const auto state = parse_file<FileJson>(found->second);
    return data::ScalerState{{"scale", state.at("scale").get<double>()},
                             {"growth_factor", state.at("growth_factor").get<double>()},
                             {"backoff_factor", state.at("backoff_factor").get<double>()},
                             {"growth_interval", state.at("growth_interval").get<int64_t>()},
                             {"_growth_tracker", state.at("_growth_tracker").get<int64_t>()}};
  } catch (const FileJson::exception&) {
    throw CheckpointError(fmt::format("cannot export {}", file),
                          fmt::format("its '{}' is damaged", kScaler),
                          "another checkpoint of that run");
  }
}

std::string way_to_load(const fs::path& to, bool for_torch, bool with_scaler) {
  const std::string file = to.string();
  if (!for_torch) return fmt::format("safetensors.torch.load_file('{}')", file);
  const std::string load = fmt::format("torch.load('{}')", file);
  return with_scaler ? fmt::format("{}['model'], and ['scaler'] for GradScaler", load) : load;
}

}  // namespace

std::string export_weights(const fs::path& from, const fs::path& to, const std::string& prefix) {
  const bool for_torch = is_for_torch(to);
  if (from.string().ends_with(".state.safetensors")) {
    throw CheckpointError(fmt::format("{} holds an optimizer's state, not weights", from.string()),
                          "a checkpoint is two files",
                          "the file beside it, without .state in its name");
  }
  std::error_code unknown;  // the write says why such a file cannot be made
  if (fs::exists(fs::symlink_status(to, unknown))) {
    throw UsageError(fmt::format("{} exists", to.string()),
                     "an export replaces no file: it may be a run's",
                     "another name, or remove it first");
  }
  Safetensors content = read_weights(from);
  Safetensors exported{.tensors = renamed(std::move(content.tensors), prefix), .metadata = {}};
  for (const char* key : kKept) {
    const auto found = content.metadata.find(key);
    if (found != content.metadata.end()) exported.metadata.insert(*found);
  }
  exported.metadata["format"] = "pt";  // what Hugging Face's readers look for
  const std::optional<data::ScalerState> scaler = scaler_of(exported.metadata, from.string());
  if (for_torch) {
    data::write_torch_file(to, exported, scaler);
  } else {
    write_safetensors(to, exported);
  }
  return fmt::format("{}: {} tensors\nin Python: {}\n",
                     to.string(),
                     exported.tensors.size(),
                     way_to_load(to, for_torch, scaler.has_value()));
}

namespace fs = std::filesystem;

Safetensors read_weights(const fs::path& path) {
  std::error_code no_run;
  const fs::path newest = path / kCheckpointsFolder / kLastFile;
  const fs::path& file = fs::exists(newest, no_run) ? newest : path;
  try {
    return data::is_torch_file(file) ? data::read_torch_file(file) : read_safetensors(file);
  } catch (const EnvironmentError& error) {
    throw CheckpointError(error.what(), error.why(), error.hint(), error.remedy());
  }
}

}  // namespace lockstep::trainers
