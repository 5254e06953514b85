#include "trainers/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <regex>
#include <system_error>

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "core/error.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

// The step of a model file's name.
std::optional<int64_t> step_of(const fs::path& file) {
  static const std::regex pattern(R"(step(\d{7,15})\.safetensors)");
  const std::string name = file.filename().string();
  std::smatch match;
  if (!std::regex_match(name, match, pattern)) return std::nullopt;
  return std::stoll(match[1]);
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    files.push_back(file.path());
  }
  if (error == std::errc::permission_denied) {
    throw EnvironmentError(
        fmt::format("cannot read {}", folder.string()), error.message(), "check who may read it");
  }
  return files;
}

bool is_pair(const fs::path& model_file) {
  std::error_code error;
  return fs::is_regular_file(state_file_of(model_file), error);
}

}  // namespace

std::vector<StoredCheckpoint> list_checkpoints(const fs::path& folder) {
  std::vector<StoredCheckpoint> found;
  for (const fs::path& file : files_in(folder)) {
    const std::optional<int64_t> step = step_of(file);
    if (step && is_pair(file)) found.push_back({.step = *step, .model_file = file});
  }
  std::ranges::sort(found, std::ranges::greater{}, &StoredCheckpoint::step);
  return found;
}

std::optional<SoundCheckpoint> newest_sound(const fs::path& folder,
                                            std::vector<std::string>& notes) {
  for (const StoredCheckpoint& stored : list_checkpoints(folder)) {
    try {
      return SoundCheckpoint{.model_file = stored.model_file,
                             .checkpoint = read_checkpoint(stored.model_file)};
    } catch (const CheckpointError& error) {
      notes.push_back(fmt::format("note: passed over: {}: {}", error.what(), error.why()));
    }
  }
  return std::nullopt;
}

void mark_last(const fs::path& model_file) {
  link_atomically(model_file.parent_path() / "last.safetensors", model_file.filename());
}

void remove_leftovers(const fs::path& folder) {
  for (const fs::path& file : files_in(folder)) {
    const bool unfinished = file.filename().string().starts_with(".tmp.");
    const bool unpaired = step_of(file).has_value() && !is_pair(file);
    std::error_code ignored;
    if (unfinished || unpaired) fs::remove(file, ignored);
  }
}

void remove_superseded(const fs::path& folder, int64_t step, int64_t keep) {
  int64_t kept = 0;
  for (const StoredCheckpoint& stored : list_checkpoints(folder)) {
    if (stored.step <= step && kept++ < keep) continue;
    std::error_code ignored;
    fs::remove(state_file_of(stored.model_file), ignored);
    fs::remove(stored.model_file, ignored);
  }
}

}  // namespace lockstep::trainers
