#include "trainers/checkpoint/checkpoint_file.h"

#include <algorithm>
#include <regex>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "core/digest.h"
#include "core/error.h"
#include "core/safetensors_header.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDigestKey = "digest";
constexpr const char* kHint =
    "an older checkpoint of that run; --resume auto looks for the newest sound one";

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  throw CheckpointError(fmt::format("cannot use {} as a checkpoint", file.string()), why, kHint);
}

// The digest of all tensors and of all metadata but the digest itself.
std::string digest_text(const Safetensors& content) {
  Digest digest;
  digest.update(digest_of_row_major(content.tensors));
  for (const auto& [key, value] : content.metadata) {
    if (key == kDigestKey) continue;
    for (const std::string& text : {key, value}) {
      digest.update(uint64_t{text.size()});
      digest.update(text);
    }
  }
  return to_hex(digest.value());
}

void write_sealed(const fs::path& file, Safetensors content) {
  content.metadata["format"] = "pt";  // what Hugging Face's readers look for
  content.metadata[kDigestKey] = digest_text(content);
  write_safetensors(file, content);
}

struct SealedFile {
  CheckpointRecord record;
  FileTensors tensors;
};

SealedFile read_sealed(const fs::path& file) {
  const auto check = [&](const SafetensorsHeader& header) {
    check_version(header.metadata, file.string());
    if (!header.metadata.contains(kDigestKey)) refuse(file, "it has no digest of its content");
  };
  Safetensors content;
  try {
    content = read_safetensors(file, check);
  } catch (const EnvironmentError& error) {
    refuse(file, error.why());
  }
  if (content.metadata.at(kDigestKey) != digest_text(content)) {
    refuse(file, "its content is not what was written: its digest differs");
  }
  return {.record = record_of(content.metadata, file.string()),
          .tensors = std::move(content.tensors)};
}

}  // namespace

std::string model_file_name(int64_t step) {
  return fmt::format("step{:07}.safetensors", step);
}

fs::path state_file_of(const fs::path& model_file) {
  return fs::path(model_file).replace_extension(".state.safetensors");
}

void write_model(const fs::path& file, CheckpointRecord& record, FileTensors model) {
  record.model_digest = to_hex(digest_of_row_major(model));
  write_sealed(file, {.tensors = std::move(model), .metadata = to_metadata(record)});
}

void write_state(const fs::path& model_file,
                 const CheckpointRecord& record,
                 FileTensors optimizer) {
  write_sealed(state_file_of(model_file),
               {.tensors = std::move(optimizer), .metadata = to_metadata(record)});
}

Checkpoint read_checkpoint(const fs::path& model_file) {
  std::error_code error;
  const fs::path state_file = state_file_of(model_file);
  if (!fs::exists(model_file, error)) refuse(model_file, "there is no such file");
  if (!fs::exists(state_file, error)) {
    throw CheckpointError(
        fmt::format("cannot resume from {}", model_file.string()),
        fmt::format("it holds a model; the rest of the training state, {}, is missing",
                    state_file.string()),
        fmt::format("--pretrained {} to start from its weights, or another checkpoint",
                    model_file.string()));
  }
  SealedFile model = read_sealed(model_file);
  SealedFile state = read_sealed(state_file);
  if (state.record.model_digest != to_hex(digest_of_row_major(model.tensors))) {
    refuse(state_file, fmt::format("it belongs to other weights than {}", model_file.string()));
  }
  return {.record = std::move(state.record),
          .model = std::move(model.tensors),
          .optimizer = std::move(state.tensors)};
}

namespace {

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
      notes.push_back(fmt::format("note: skipped a checkpoint: {}: {}", error.what(), error.why()));
    }
  }
  return std::nullopt;
}

namespace {

// Points last.safetensors at this checkpoint.
void mark_last(const fs::path& model_file) {
  link_atomically(model_file.parent_path() / "last.safetensors", model_file.filename());
}

// Removes what a killed process left: unfinished writes, and models whose state was not yet
// written. Requires: no other process writes there.
void remove_leftovers(const fs::path& folder) {
  for (const fs::path& file : files_in(folder)) {
    const bool unfinished = file.filename().string().starts_with(".tmp.");
    const bool unpaired = step_of(file).has_value() && !is_pair(file);
    std::error_code ignored;
    if (unfinished || unpaired) fs::remove(file, ignored);
  }
}

// Removes all but the `keep` newest up to `step`, and those after it: they were made by a
// continuation that was given up. What cannot be removed stays.
void remove_superseded(const fs::path& folder, int64_t step, int64_t keep) {
  int64_t kept = 0;
  for (const StoredCheckpoint& stored : list_checkpoints(folder)) {
    if (stored.step <= step && kept++ < keep) continue;
    std::error_code ignored;
    fs::remove(state_file_of(stored.model_file), ignored);
    fs::remove(stored.model_file, ignored);
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(Options options, RunIdentity run, Console& console)
    : options_(std::move(options)),
      run_(std::move(run)),
      console_(console),
      newest_sound_(options_.newest_sound) {
  remove_leftovers(options_.folder);
}

template <class Write>
bool CheckpointWriter::try_to_save(const fs::path& file, Write&& write) {
  try {
    write();
    return true;
  } catch (const EnvironmentError& error) {
    const std::string newest = newest_sound_.empty()
                                   ? "there is no checkpoint yet"
                                   : "the newest sound checkpoint is " + newest_sound_.string();
    console_.warn(fmt::format(
        "lockstep: warning: {} is not saved\n  why: {}: {}\n  try: {}; training goes on, {}",
        file.string(),
        error.what(),
        error.why(),
        advice_of(error),
        newest));
    return false;
  }
}

void CheckpointWriter::save(const nn::Module& model,
                            const nn::Optimizer& optimizer,
                            const TrainingPosition& at) {
  const fs::path file = options_.folder / model_file_name(at.steps);
  last_is_saved_ = try_to_save(file, [&] {
    CheckpointRecord record{.run = run_, .at = at, .model_digest = {}};
    write_model(file, record, file_tensors(model.state()));
    write_state(file, record, file_tensors(optimizer.state()));
    newest_sound_ = file;
    mark_last(file);
    remove_superseded(options_.folder, at.steps, options_.keep);
  });
  if (!last_is_saved_) remove_leftovers(options_.folder);
}

void CheckpointWriter::save_best(const nn::Module& model, const TrainingPosition& at) {
  save_weights("best.safetensors", model, at, run_);
}

void CheckpointWriter::save_average(const nn::Module& model, const TrainingPosition& at) {
  RunIdentity run = run_;
  run.evaluation.average = true;
  save_weights("ema.safetensors", model, at, run);
}

void CheckpointWriter::save_weights(const char* name,
                                    const nn::Module& model,
                                    const TrainingPosition& at,
                                    const RunIdentity& run) {
  const fs::path file = options_.folder / name;
  try_to_save(file, [&] {
    CheckpointRecord record{.run = run, .at = at, .model_digest = {}};
    write_model(file, record, file_tensors(model.state()));
  });
}

}  // namespace lockstep::trainers
