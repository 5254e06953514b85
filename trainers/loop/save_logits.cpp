#include "trainers/loop/save_logits.h"

#include <system_error>

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/words.h"
#include "trainers/report/errors.h"

namespace lockstep::trainers {

void check_logits_file(const std::filesystem::path& file, bool overwrite) {
  std::error_code ignored;
  const auto refuse = [&](const char* why, const char* hint) {
    throw UsageError(
        fmt::format("--save-logits {} cannot be written", printable(file.string())), why, hint);
  };
  const std::filesystem::file_status status = std::filesystem::status(file, ignored);
  if (std::filesystem::is_directory(status)) refuse("it is a folder", "a name in it");
  if (std::filesystem::exists(status) && !overwrite) {
    refuse("there is such a file", "another name, or --overwrite to replace it");
  }
  const Folder folder = folder_for(file);
  const AtomicFile trial(folder, file.filename().string());  // removed at once
}

void write_logits(const std::filesystem::path& file,
                  const Safetensors& content,
                  Communicator& ranks) {
  const auto write = [&] {
    if (ranks.rank() == 0) write_safetensors(file, content);
  };
  run_or_end_all_ranks(ranks, write, "saving the logits");
}

}  // namespace lockstep::trainers
