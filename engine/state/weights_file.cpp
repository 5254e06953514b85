#include "engine/state/weights_file.h"

#include <utility>

#include <fmt/core.h>

#include "core/error.h"
#include "core/safetensors_header.h"
#include "data/torch_file/torch_file.h"

namespace lockstep {
namespace {

// Calls read(). Reports a file that cannot be read as a CheckpointError too.
template <class Read>
auto of_checkpoint(Read&& read) {
  try {
    return read();
  } catch (const EnvironmentError& error) {
    throw CheckpointError(error.what(), error.why(), error.hint(), error.remedy());
  }
}

}  // namespace

std::string format_version() {
  return fmt::format("{}.{}", kFormatMajor, kFormatMinor);
}

WeightsFile::WeightsFile(std::filesystem::path file)
    : file_(std::move(file)), of_torch_(of_checkpoint([&] { return data::is_torch_file(file_); })) {
  content_ = of_checkpoint([&] {
    return of_torch_
               ? data::read_torch_file(file_)
               : Safetensors{.tensors = {}, .metadata = read_safetensors_header(file_).metadata};
  });
}

LoadedWeights WeightsFile::load_into(nn::Module& model, Classifier classifier) {
  FileTensors tensors = std::exchange(content_.tensors, {});
  if (!of_torch_) {
    const auto check = [&](const SafetensorsHeader& header) {
      if (header.metadata != content_.metadata) {
        throw CheckpointError(fmt::format("{} has changed since it was opened", file_.string()),
                              "its metadata changed",
                              "a file that is not in use");
      }
      check_pretrained(file_, header, model, classifier);
    };
    tensors = of_checkpoint([&] { return read_safetensors(file_, check).tensors; });
  }
  return load_pretrained(file_, std::move(tensors), model, classifier);
}

}  // namespace lockstep
