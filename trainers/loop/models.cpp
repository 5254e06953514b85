#include "trainers/loop/models.h"

#include "nn/convnet.h"

namespace lockstep::trainers {

std::unique_ptr<nn::Module> make_model(const ModelOptions& options, const nn::Init& init) {
  const std::string& arch = options.arch;
  if (arch == "convnet") return std::make_unique<nn::ConvNet>(init);
  if (arch == "toy_net") return std::make_unique<nn::ToyNet>(init);
  throw UsageError(fmt::format("there is no network '{}'", arch), "", "--arch convnet or toy_net");
}

void check_classes(const ModelOptions& options, const data::Dataset& dataset) {
  if (options.classes >= dataset.classes()) return;
  throw UsageError(
      fmt::format("--num-classes {} is too few for {}", options.classes, dataset.name()),
      fmt::format("its labels go from 0 to {}", dataset.classes() - 1),
      fmt::format("--num-classes {}, or leave it out", dataset.classes()));
}

}  // namespace lockstep::trainers
