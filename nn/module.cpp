#include "nn/module.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "core/check.h"
#include "core/safetensors_header.h"
#include "core/words.h"

namespace lockstep::nn {
namespace {

// check_name() sees one module. The child "a.f" and the part "f" of the child "a" meet only here.
void check_full_names(const std::vector<StateEntry>& entries) {
  std::set<std::string_view> names;
  for (const StateEntry& entry : entries) {
    if (names.insert(entry.name).second) continue;
    throw UsageError(fmt::format("two tensors of a network are called '{}'", entry.name),
                     "a file of weights could hold only one of them",
                     "another name for a module that holds one of them");
  }
}

}  // namespace

std::vector<Tensor> tensors_of(std::span<const StateEntry> entries) {
  std::vector<Tensor> tensors;
  tensors.reserve(entries.size());
  for (const StateEntry& entry : entries) tensors.push_back(entry.tensor);
  return tensors;
}

void Module::apply(FunctionRef<void(Module&)> visit) {
  visit(*this);
  for (const Child& child : children_) child.module->apply(visit);
}

void Module::train(bool training) {
  apply([training](Module& module) { module.training_ = training; });
}

void Module::count_step() {
  for (const Child& child : children_) child.module->count_step();
}

std::vector<StateEntry> Module::state() const {
  std::vector<StateEntry> entries;
  collect_state("", entries);
  check_full_names(entries);
  return entries;
}

std::vector<NamedParameter> Module::named_parameters() const {
  std::vector<NamedParameter> found;
  collect_parameters("", false, found);
  return found;
}

std::vector<NamedParameter> Module::frozen_parameters() const {
  std::vector<NamedParameter> found;
  collect_parameters("", true, found);
  return found;
}

std::vector<Var> Module::parameters() const {
  std::vector<Var> vars;
  for (const NamedParameter& parameter : named_parameters()) vars.push_back(parameter.var);
  return vars;
}

std::vector<std::string> Module::parameter_names() const {
  std::vector<std::string> names;
  for (const NamedParameter& parameter : named_parameters()) names.push_back(parameter.name);
  return names;
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const NamedParameter& parameter : named_parameters()) count += parameter.file_shape.numel();
  return count;
}

Var Module::register_parameter(std::string name, Tensor tensor, const Shape* file_shape) {
  const Shape shape = file_shape != nullptr ? *file_shape : tensor.shape();
  LS_CHECK(shape.numel() == tensor.numel(), "[{}] file shape {}", name, to_string(shape));
  check_name(name);
  Var var(std::move(tensor), true);
  parameters_.push_back({.name = std::move(name), .var = var, .file_shape = shape});
  return var;
}

Var Module::register_norm_parameter(std::string name, Tensor tensor) {
  Var var = register_parameter(std::move(name), std::move(tensor));
  parameters_.back().of_norm = true;
  return var;
}

Var Module::register_frozen(std::string name, Tensor tensor) {
  Var var = register_parameter(std::move(name), std::move(tensor));
  var.set_requires_grad(false);
  parameters_.back().frozen = true;
  return var;
}

Tensor Module::register_buffer(std::string name, Tensor tensor) {
  check_name(name);
  buffers_.push_back({std::move(name), tensor});
  return tensor;
}

void Module::own_module(std::string name, std::unique_ptr<Module> child) {
  register_module(std::move(name), *child);
  owned_.push_back(std::move(child));
}

void Module::register_module(std::string name, Module& child) {
  check_name(name);
  children_.push_back({std::move(name), &child});
}

void Module::check_name(const std::string& name) const {
  if (!is_tensor_name(name)) {
    throw UsageError(fmt::format("a part of a network is called '{}'", printable(name)),
                     "files of weights hold names of A-Z a-z 0-9 _ . - / alone, without ..",
                     "a name of these characters");
  }
  const auto has_it = [&](const auto& parts) {
    return std::ranges::any_of(parts, [&](const auto& part) { return part.name == name; });
  };
  if (!has_it(parameters_) && !has_it(buffers_) && !has_it(children_)) return;
  throw UsageError(fmt::format("two parts of a module are called '{}'", name),
                   "a file of weights could hold only one of them",
                   "another name for one of them");
}

void Module::collect_state(const std::string& prefix, std::vector<StateEntry>& entries) const {
  for (const NamedParameter& parameter : parameters_) {
    entries.push_back({prefix + parameter.name, parameter.var.value(), parameter.file_shape, true});
  }
  for (const Buffer& buffer : buffers_) {
    entries.push_back({prefix + buffer.name, buffer.tensor, buffer.tensor.shape(), false});
  }
  for (const Child& child : children_) {
    child.module->collect_state(prefix + child.name + ".", entries);
  }
}

void Module::collect_parameters(const std::string& prefix,
                                bool frozen,
                                std::vector<NamedParameter>& found) const {
  for (const NamedParameter& parameter : parameters_) {
    const auto is_this = [&](const NamedParameter& other) {
      return other.var.same_as(parameter.var);
    };
    if (parameter.frozen != frozen || std::ranges::any_of(found, is_this)) continue;
    found.push_back(parameter);
    found.back().name = prefix + parameter.name;
  }
  for (const Child& child : children_) {
    child.module->collect_parameters(prefix + child.name + ".", frozen, found);
  }
}

}  // namespace lockstep::nn
