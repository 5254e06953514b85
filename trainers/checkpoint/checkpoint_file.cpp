#include "trainers/checkpoint/checkpoint_file.h"

#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "core/digest.h"
#include "core/error.h"
#include "core/safetensors.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDigestKey = "digest";
constexpr const char* kHint =
    "an older checkpoint of that run; --resume auto looks for the newest sound one";

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  throw CheckpointError(fmt::format("cannot use {} as a checkpoint", file.string()), why, kHint);
}

// Over all tensors and all metadata but itself.
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
  Safetensors content;
  try {
    content = read_safetensors(file);
  } catch (const EnvironmentError& error) {
    refuse(file, error.why());
  }
  check_version(content.metadata, file.string());
  const auto sealed = content.metadata.find(kDigestKey);
  if (sealed == content.metadata.end()) refuse(file, "it has no digest of its content");
  if (sealed->second != digest_text(content)) {
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

}  // namespace lockstep::trainers
