#include "kernels/conv/cudnn_plan.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "core/function_ref.h"
#include "core/words.h"
#include "kernels/conv/cudnn_graph.h"
#include "kernels/support/cudnn/device_properties.h"

namespace lockstep::kernels::cudnn {
namespace {

Descriptor engine_of(const Descriptor& config) {
  return std::move(
      config.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1).at(0));
}

std::vector<cudnnBackendNumericalNote_t> notes_of(const Descriptor& config) {
  return engine_of(config).values<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
}

// True if the engine gives the same bits in each run, sums in f32 and rounds no input. Tensor cores
// read f32 as TF32; for such engines cuDNN notes only the tensor cores, not the conversion.
bool is_exact(const Descriptor& config, Dtype dtype) {
  return std::ranges::none_of(notes_of(config), [&](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && dtype == Dtype::kF32);
  });
}

std::string choice_of(const Descriptor& config) {
  std::string text =
      fmt::format("engine {}", engine_of(config).value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  for (const Descriptor& knob : config.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                   CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                                   CUDNN_KNOB_TYPE_COUNTS)) {
    const auto type = knob.value<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
    const auto value = knob.value<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    text += fmt::format(" {}:{}", static_cast<int>(type), value);
  }
  return text;
}

std::vector<Descriptor> preferences(const Target& target,
                                    const Descriptor& graph,
                                    cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (target.properties() != nullptr)
    heuristics.set(kHeuristicsDeviceProperties, *target.properties());
  if (!heuristics.try_finalize()) return {};
  return heuristics.descriptors(
      CUDNN_ATTR_ENGINEHEUR_RESULTS,
      CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
      heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR));
}

// Calls visit(config) for each engine that is exact, in cuDNN's order, until it returns true.
void visit_engines(const Target& target,
                   const ConvolutionProblem& problem,
                   FunctionRef<bool(const Descriptor& config)> visit) {
  const Descriptor graph = operation_graph(target, problem);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& config : preferences(target, graph, mode)) {
      if (is_exact(config, problem.dtype) && visit(config)) return;
    }
  }
}

// Returns null when the engine does not support this problem after all, or needs more workspace.
std::unique_ptr<ConvolutionPlan> plan_of(const Target& target,
                                         const Descriptor& config,
                                         const ConvolutionProblem& problem,
                                         size_t most_workspace) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (target.handle() != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle());
  if (!plan.try_finalize()) return nullptr;
  auto made = std::make_unique<ConvolutionPlan>(std::move(plan), config, problem);
  return made->workspace_bytes() <= most_workspace ? std::move(made) : nullptr;
}

// "f16, which has a plan", or a text that says that no type has one.
std::string other_types(const Target& target,
                        const ConvolutionProblem& problem,
                        size_t most_workspace) {
  std::string names;
  for (const Dtype dtype : {Dtype::kF16, Dtype::kBF16, Dtype::kF32}) {
    ConvolutionProblem other = problem;
    other.dtype = dtype;
    if (dtype == problem.dtype || find_plan(target, other, most_workspace) == nullptr) continue;
    names += fmt::format("{}{}", names.empty() ? "" : " or ", lockstep::name_of(dtype));
  }
  return names.empty() ? "another shape: no float type has a plan for this one"
                       : fmt::format("{}, which has a plan", names);
}

}  // namespace

ConvolutionPlan::ConvolutionPlan(Descriptor plan,
                                 const Descriptor& config,
                                 const ConvolutionProblem& problem)
    : plan_(std::move(plan)),
      has_bias_(problem.has_bias),
      gives_sums_(problem.gives_sums),
      norms_in_(problem.norms_in),
      workspace_bytes_(
          static_cast<size_t>(plan_.value<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE))),
      choice_(choice_of(config)),
      notes_(notes_of(config)) {}

void ConvolutionPlan::execute(cudnnHandle_t handle,
                              const ConvolutionMemory& memory,
                              void* workspace) const {
  std::array<int64_t, 8> ids{};
  std::array<void*, 8> pointers{};
  size_t count = 0;
  const auto put = [&](bool is_asked, TensorId id, void* pointer) {
    if (!is_asked) return;
    ids[count] = id;
    pointers[count++] = pointer;
  };
  put(true, kIn, memory.in);
  put(true, kWeight, memory.weight);
  put(true, kOut, memory.out);
  put(has_bias_, kBias, memory.bias);
  put(gives_sums_, kSums, memory.sums);
  put(gives_sums_, kSquareSums, memory.square_sums);
  put(norms_in_, kInScale, memory.in_scale);
  put(norms_in_, kInShift, memory.in_shift);
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set_all(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const int64_t>(ids).first(count))
      .set_addresses(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span(pointers).first(count))
      .set_addresses(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, {&workspace, 1})
      .finalize();
  check(api().execute(handle, plan_.get(), pack.get()), "to execute a convolution");
}

std::unique_ptr<ConvolutionPlan> find_plan(const Target& target,
                                           const ConvolutionProblem& problem,
                                           size_t most_workspace) {
  std::unique_ptr<ConvolutionPlan> plan;
  visit_engines(target, problem, [&](const Descriptor& config) {
    plan = plan_of(target, config, problem, most_workspace);
    return plan != nullptr;
  });
  return plan;
}

std::vector<std::unique_ptr<ConvolutionPlan>> fitting_plans(const Target& target,
                                                            const ConvolutionProblem& problem,
                                                            size_t most_workspace) {
  std::vector<std::unique_ptr<ConvolutionPlan>> plans;
  std::set<std::string> seen;
  visit_engines(target, problem, [&](const Descriptor& config) {
    if (!seen.insert(choice_of(config)).second) return false;
    auto plan = plan_of(target, config, problem, most_workspace);
    if (plan) plans.push_back(std::move(plan));
    return false;
  });
  return plans;
}

std::unique_ptr<ConvolutionPlan> make_plan(const Target& target,
                                           const ConvolutionProblem& problem,
                                           size_t most_workspace) {
  std::unique_ptr<ConvolutionPlan> plan = find_plan(target, problem, most_workspace);
  if (plan) return plan;
  throw EnvironmentError(
      "cuDNN has no plan for a convolution",
      fmt::format("{}: no engine of cuDNN {} computes it with the same bits each time and no more "
                  "than {} MiB of workspace",
                  problem.text(),
                  api().version(),
                  most_workspace >> 20),
      other_types(target, problem, most_workspace));
}

std::unique_ptr<ConvolutionPlan> make_plan(const Target& target,
                                           const ConvolutionProblem& problem,
                                           size_t most_workspace,
                                           std::string_view choice) {
  std::unique_ptr<ConvolutionPlan> plan;
  visit_engines(target, problem, [&](const Descriptor& config) {
    if (choice_of(config) == choice) plan = plan_of(target, config, problem, most_workspace);
    return plan != nullptr;
  });
  if (plan) return plan;
  throw EnvironmentError(
      "cuDNN lacks the engine that was chosen for a convolution",
      fmt::format("{}: \"{}\" is none of those of cuDNN {} that compute it with the same bits each "
                  "time and no more than {} MiB of workspace",
                  problem.text(),
                  printable(choice),
                  api().version(),
                  most_workspace >> 20),
      "another plan file, or engines by rule",
      Remedy::kPlanFile);
}

}  // namespace lockstep::kernels::cudnn
