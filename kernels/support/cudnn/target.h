// The GPU that plans are made for: this process's, or one that a text describes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/stream.h"
#include "kernels/support/cudnn/descriptor.h"

namespace lockstep::kernels::cudnn {

// Thread safety: none.
class Target {
 public:
  // The process's device. Errors: CudnnError; as api().
  static Target present();
  // `properties`: what properties_of_present() returns on such a GPU. Plans for it can be made and
  // inspected, but not executed. Errors: CudnnError for another text; EnvironmentError where cuDNN
  // is older than 9.11; as api().
  static Target described_by(const std::string& properties);

  cudnnHandle_t handle() const { return handle_.get(); }  // null for a described GPU
  const Descriptor* properties() const { return properties_ ? &*properties_ : nullptr; }

 private:
  std::shared_ptr<std::remove_pointer_t<cudnnHandle_t>> handle_;
  std::optional<Descriptor> properties_;  // of a described GPU
};

// The process's device, with its handle set to `stream` for the next calls. Errors: as
// Target::present().
const Target& target_of(Stream& stream);

// JSON, for Target::described_by. Errors: CudnnError; EnvironmentError where cuDNN is older than
// 9.11; as api().
std::string properties_of_present();

}  // namespace lockstep::kernels::cudnn
