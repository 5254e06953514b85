#include "trainers/loop/models.h"

#include "nn/convnet.h"

namespace lockstep::trainers {

std::unique_ptr<nn::Module> make_model(const ModelOptions& options, const nn::Init& init) {
  const std::string& arch = options.arch;
  if (arch == "convnet") return std::make_unique<nn::ConvNet>(init);
  if (arch == "toy_net") return std::make_unique<nn::ToyNet>(init);
  throw UsageError(fmt::format("there is no network '{}'", arch), "", "--arch convnet or toy_net");
}

}  // namespace lockstep::trainers
