// The GPU that plans are made for: the one that is here, or one that a text describes.
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
  // `properties`: as properties_of_present() gives it on such a card. Its plans can be made and
  // looked at, not executed. Errors: CudnnError for another text; EnvironmentError where cuDNN is
  // older than 9.11; as api().
  static Target described_by(const std::string& properties);

  cudnnHandle_t handle() const { return handle_.get(); }  // null for a described one
  const Descriptor* properties() const { return properties_ ? &*properties_ : nullptr; }

 private:
  std::shared_ptr<std::remove_pointer_t<cudnnHandle_t>> handle_;
  std::optional<Descriptor> properties_;  // of a described one
};

// The process's device, for calls that `stream` is to run next. Errors: as Target::present().
const Target& target_of(Stream& stream);

// JSON, for Target::described_by. Errors: CudnnError; EnvironmentError where cuDNN is older than
// 9.11; as api().
std::string properties_of_present();

}  // namespace lockstep::kernels::cudnn
