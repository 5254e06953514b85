// Modules: parameters, buffers and children with PyTorch's names.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd.h"
#include "core/device.h"
#include "core/function_ref.h"
#include "core/mt19937.h"

#pragma GCC visibility push(default)
namespace lockstep::nn {

// Arguments of a model's constructor: PyTorch's generator, drawn from in construction order, and
// the device of its tensors.
struct Init {
  Mt19937& rng;
  Device device = Device::kCpu;
};

// One tensor of a model's state, sharing memory with the model.
struct StateEntry {
  std::string name;  // PyTorch's, "layer1.0.weight"
  Tensor tensor;     // the engine's layout
  Shape file_shape;  // PyTorch's; the same number of elements
  bool is_parameter = false;
};

// The entries' tensors.
std::vector<Tensor> tensors_of(std::span<const StateEntry> entries);

struct NamedParameter {
  std::string name;  // PyTorch's, "layer1.0.weight"
  Var var;
  Shape file_shape;      // PyTorch's; the same number of elements
  bool of_norm = false;  // weight or bias of a normalization
  bool frozen = false;   // never changed by training
};

// A function with state. Owns its tensors; its children are members of the derived class.
// Thread safety: none.
class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  virtual Var forward(const Var& x) = 0;

  // Calls visit for this module and all below it.
  void apply(FunctionRef<void(Module&)> visit);
  void train(bool training = true);
  // Updates the step counters that forward() updates on the host, for training steps that a
  // recorded graph replays.
  virtual void count_step();
  bool training() const { return training_; }

  // In state_dict() order: own parameters, own buffers, then each child's.
  std::vector<StateEntry> state() const;
  // In PyTorch's parameters() order, without frozen parameters. One that is registered twice is
  // there once, by its first name. parameters() and parameter_names() return parts of it.
  std::vector<NamedParameter> named_parameters() const;
  std::vector<Var> parameters() const;
  std::vector<std::string> parameter_names() const;
  int64_t parameter_count() const;  // elements of all of them
  std::vector<NamedParameter> frozen_parameters() const;

 protected:
  // file_shape: PyTorch's shape where it differs from the tensor's. Errors, here and below:
  // UsageError for a name that this module has already, or that files of weights cannot hold: they
  // take A-Z a-z 0-9 _ . - / without "..".
  Var register_parameter(std::string name, Tensor tensor, const Shape* file_shape = nullptr);
  Var register_norm_parameter(std::string name, Tensor tensor);
  // Registers a parameter that is part of the state and has no gradient.
  Var register_frozen(std::string name, Tensor tensor);
  Tensor register_buffer(std::string name, Tensor tensor);
  // The child must be a member of this module.
  void register_module(std::string name, Module& child);
  // Registers a child and owns it.
  void own_module(std::string name, std::unique_ptr<Module> child);
  // Makes such a child from a constructor's arguments.
  template <class T, class... Args>
  T& make_module(std::string name, Args&&... args) {
    auto child = std::make_unique<T>(std::forward<Args>(args)...);
    T& made = *child;
    own_module(std::move(name), std::move(child));
    return made;
  }

 private:
  struct Buffer {
    std::string name;
    Tensor tensor;
  };
  struct Child {
    std::string name;
    Module* module;
  };

  void check_name(const std::string& name) const;
  void collect_state(const std::string& prefix, std::vector<StateEntry>& entries) const;
  void collect_parameters(const std::string& prefix,
                          bool frozen,
                          std::vector<NamedParameter>& found) const;

  std::vector<NamedParameter> parameters_;
  std::vector<Buffer> buffers_;
  std::vector<Child> children_;
  std::vector<std::unique_ptr<Module>> owned_;
  bool training_ = true;
};

}  // namespace lockstep::nn
#pragma GCC visibility pop
