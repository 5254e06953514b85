// --save-logits: writes the logits of an evaluation to a file.
#pragma once

#include <filesystem>

#include "core/communicator.h"
#include "core/safetensors.h"

namespace lockstep::trainers {

// Errors: UsageError for a file that is there already, unless `overwrite`, or a folder;
// EnvironmentError where none can be written.
void check_logits_file(const std::filesystem::path& file, bool overwrite);

// Writes LogitCollector::over_ranks() on rank 0, as write_safetensors() does. An error ends all
// ranks. A collective call.
void write_logits(const std::filesystem::path& file,
                  const Safetensors& content,
                  Communicator& ranks);

}  // namespace lockstep::trainers
