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
#include "core/safetensors_parts.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDigestKey = "digest";
constexpr std::string_view kStateEnding = ".state.safetensors";
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

void append_sealed(AtomicFile& file, const CheckpointRecord& record, const FileTensors& tensors) {
  Safetensors content{.tensors = tensors, .metadata = to_metadata(record)};
  content.metadata["format"] = "pt";  // what Hugging Face's readers look for
  content.metadata[kDigestKey] = digest_text(content);
  append_safetensors(file, content);
  file.flush();
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

std::optional<int64_t> step_of_model(const std::string& name) {
  static const std::regex pattern(R"(step(\d{7,15})\.safetensors)");
  std::smatch match;
  if (!std::regex_match(name, match, pattern)) return std::nullopt;
  return std::stoll(match[1]);
}

fs::path state_file_of(const fs::path& model_file) {
  return fs::path(model_file).replace_extension(kStateEnding);
}

std::optional<std::string> model_of_state(const std::string& name) {
  if (!name.ends_with(kStateEnding)) return std::nullopt;
  return name.substr(0, name.size() - kStateEnding.size()) + ".safetensors";
}

void write_checkpoint(const Folder& folder,
                      const std::string& model_file,
                      CheckpointRecord& record,
                      const FileTensors& model,
                      const FileTensors& optimizer) {
  record.model_digest = to_hex(digest_of_row_major(model));
  const std::string state_file = state_file_of(model_file).string();
  AtomicFile model_half(folder, model_file);
  append_sealed(model_half, record, model);
  AtomicFile state_half(folder, state_file);
  append_sealed(state_half, record, optimizer);
  state_half.take_place();
  model_half.take_place();
}

void write_weights(const Folder& folder,
                   const std::string& file,
                   CheckpointRecord& record,
                   const FileTensors& model) {
  record.model_digest = to_hex(digest_of_row_major(model));
  AtomicFile written(folder, file);
  append_sealed(written, record, model);
  written.take_place();
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

bool is_pair(const fs::path& model_file) {
  std::error_code error;
  return fs::is_regular_file(state_file_of(model_file), error);
}

std::vector<StoredCheckpoint> list_models(const fs::path& folder, bool paired) {
  std::vector<StoredCheckpoint> found;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    const std::optional<int64_t> step = step_of_model(file->path().filename().string());
    if (step && is_pair(file->path()) == paired) {
      found.push_back({.step = *step, .model_file = file->path()});
    }
  }
  const bool is_absent =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !is_absent) {  // a run that goes on must not take it for an empty one
    throw EnvironmentError(
        fmt::format("cannot read {}", folder.string()), error.message(), "check who may read it");
  }
  std::ranges::sort(found, std::ranges::greater{}, &StoredCheckpoint::step);
  return found;
}

}  // namespace

std::vector<StoredCheckpoint> list_checkpoints(const fs::path& folder) {
  return list_models(folder, true);
}

std::vector<StoredCheckpoint> list_lone_models(const fs::path& folder) {
  return list_models(folder, false);
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

}  // namespace lockstep::trainers
