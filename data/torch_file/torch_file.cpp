#include "data/torch_file/torch_file.h"

#include <algorithm>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/input_file.h"
#include "data/torch_file/pickle_writer.h"
#include "data/torch_file/refuse.h"
#include "data/torch_file/torch_archive.h"
#include "data/torch_file/zip_writer.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

using namespace std::string_view_literals;

enum class Form : uint8_t { kOther, kZip, kBefore16, kTar, kPickle };

// Source: torch/serialization.py, MAGIC_NUMBER, pickled with protocol 2.
constexpr std::string_view kBefore16 = "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv;
constexpr size_t kTarMark = 257;  // where a tar archive says what it is

Form form_of(const fs::path& path) {
  const InputFile file(path);
  std::string head(std::min<uint64_t>(file.size(), kTarMark + 5), '\0');
  file.read(0, std::as_writable_bytes(std::span(head)));
  if (head.starts_with("PK\x03\x04")) return Form::kZip;
  if (head.starts_with(kBefore16)) return Form::kBefore16;
  if (head.size() > kTarMark && head.substr(kTarMark) == "ustar") return Form::kTar;
  // A safetensors file that begins so would have a header of this length.
  const bool pickle = head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
  return pickle && head.size() > 8 && head[8] != '{' ? Form::kPickle : Form::kOther;
}

}  // namespace

bool is_torch_file(const fs::path& path) {
  try {
    return form_of(path) != Form::kOther;
  } catch (const EnvironmentError&) {
    return false;
  }
}

Safetensors read_torch_file(const fs::path& path) {
  switch (form_of(path)) {
    case Form::kZip:
      return read_torch_archive(path);
    case Form::kBefore16:
      refuse_torch_file(path.string(),
                        "it has the format of PyTorch before 1.6, a sequence of pickles",
                        "torch.save(torch.load(FILE), OTHER_FILE) in PyTorch");
    case Form::kTar:
      refuse_torch_file(path.string(),
                        "it is a tar archive, as PyTorch before 0.1.10 wrote them",
                        "torch.save(torch.load(FILE, weights_only=False), OTHER_FILE) in PyTorch, "
                        "if you trust the file");
    case Form::kPickle:
    case Form::kOther:
      break;
  }
  refuse_torch_file(path.string(), "it is a bare pickle, not a file of torch.save", kSaveStateDict);
}

void write_torch_file(const fs::path& path,
                      const Safetensors& content,
                      const std::optional<ScalerState>& scaler) {
  const std::string pickle = pickle_of(content.tensors, scaler);
  const std::string metadata = nlohmann::json(content.metadata)
                                   .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  const std::string root = "archive";  // PyTorch takes any name
  std::vector<ZipPart> parts = {{root + "/data.pkl", bytes(pickle)},
                                {root + "/byteorder", bytes("little")},
                                {root + std::string(kMetadataMember), bytes(metadata)}};
  size_t storage = 0;
  for (const auto& [name, tensor] : content.tensors) {
    parts.push_back(
        {root + "/data/" + std::to_string(storage++), {tensor.bytes(), tensor.nbytes()}});
  }
  parts.push_back({root + "/version", bytes("3\n")});
  write_zip(path, parts);
}

}  // namespace lockstep::data
