// A chain of modules.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "nn/module.h"

namespace lockstep::nn {

// Children are named "0", "1", ... Owns: them.
class Sequential : public Module {
 public:
  explicit Sequential(std::vector<std::unique_ptr<Module>> modules) : modules_(std::move(modules)) {
    for (size_t i = 0; i < modules_.size(); ++i) register_module(std::to_string(i), *modules_[i]);
  }

  Var forward(const Var& x) override {
    Var y = x;
    for (const std::unique_ptr<Module>& module : modules_) y = module->forward(y);
    return y;
  }

 private:
  std::vector<std::unique_ptr<Module>> modules_;
};

}  // namespace lockstep::nn
