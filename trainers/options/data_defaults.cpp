#include "trainers/options/data_defaults.h"

#include "core/error.h"
#include "data/open_dataset.h"

namespace lockstep::trainers {
namespace {

constexpr std::string_view kShapes[] = {
    "--arch=resnet20", "--batch-size=16", "--epochs=4", "--lr-scheduler=cosine"};
constexpr std::string_view kCifar10[] = {"--arch=resnet20", "--batch-size=128"};

constexpr DataDefaults kForResNets[] = {{.dataset = "shapes", .arguments = kShapes},
                                        {.dataset = "cifar10", .arguments = kCifar10}};

}  // namespace

std::string_view built_in_dataset(Program program) {
  return program == Program::kTrainConvnet ? "digits" : "shapes";
}

std::string dataset_name(Program program, const std::string& name, const std::string& dir) {
  if (name != "auto") return name;
  if (dir.empty()) return std::string(built_in_dataset(program));
  try {
    return data::detect_dataset(dir, program == Program::kTrainConvnet ? 1 : 3);
  } catch (const DataError&) {
    return name;
  }
}

std::span<const DataDefaults> data_defaults(Program program) {
  if (program == Program::kTrainConvnet) return {};
  return kForResNets;
}

}  // namespace lockstep::trainers
