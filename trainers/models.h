// The networks that `--arch` names.
#pragma once

#include <memory>
#include <string>

#include "nn/module.h"

namespace lockstep::trainers {

// convnet, toy_net. Errors: UsageError naming those known.
std::unique_ptr<nn::Module> make_model(const std::string& arch, const nn::Init& init);

}  // namespace lockstep::trainers
