#include "inspect/weights/read_weights.h"

#include <system_error>

#include "core/error.h"
#include "data/torch_file/torch_file.h"
#include "trainers/config/run_files.h"

namespace lockstep::trainers {

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
