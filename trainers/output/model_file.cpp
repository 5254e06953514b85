#include "trainers/output/model_file.h"

#include <utility>

#include "core/digest.h"

namespace lockstep::trainers {

std::map<std::string, Tensor> file_tensors(const nn::Module& model) {
  std::map<std::string, Tensor> tensors;
  for (const nn::StateEntry& entry : model.state()) {
    tensors.emplace(entry.name, to_row_major(entry.tensor).view(entry.file_shape));
  }
  return tensors;
}

uint64_t state_digest(const nn::Module& model) {
  return digest_of(file_tensors(model));
}

void save_model(const std::filesystem::path& path,
                const nn::Module& model,
                std::map<std::string, std::string> metadata) {
  metadata["format"] = "pt";
  write_safetensors(path, {.tensors = file_tensors(model), .metadata = std::move(metadata)});
}

}  // namespace lockstep::trainers
