#include "kernels/cudnn/plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cudnn/graph.h"

namespace lockstep::kernels::cudnn {
namespace {

Descriptor engine_of(const Descriptor& config) {
  return std::move(
      config.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1).at(0));
}

std::vector<cudnnBackendNumericalNote_t> notes_of(const Descriptor& config) {
  return engine_of(config).values<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
}

// What a run with the same bits, and sums in f32, has no use for.
bool is_exact(const Descriptor& config) {
  return std::ranges::none_of(notes_of(config), [](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
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
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties());
  if (!heuristics.try_finalize()) return {};
  return heuristics.descriptors(
      CUDNN_ATTR_ENGINEHEUR_RESULTS,
      CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
      heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR));
}

// Null where the engine does not take this problem after all.
std::unique_ptr<ConvolutionPlan> plan_of(const Target& target,
                                         const Descriptor& config,
                                         bool has_bias) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (target.handle() != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle());
  if (!plan.try_finalize()) return nullptr;
  return std::make_unique<ConvolutionPlan>(std::move(plan), config, has_bias);
}

// "f16 has one", or that none does.
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

ConvolutionPlan::ConvolutionPlan(Descriptor plan, const Descriptor& config, bool has_bias)
    : plan_(std::move(plan)),
      has_bias_(has_bias),
      workspace_bytes_(
          static_cast<size_t>(plan_.value<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE))),
      choice_(choice_of(config)),
      notes_(notes_of(config)) {}

std::string ConvolutionPlan::serialized() const {
  return plan_.text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
}

void ConvolutionPlan::execute(cudnnHandle_t handle,
                              const ConvolutionMemory& memory,
                              void* workspace) const {
  const std::array<int64_t, 4> ids = {kIn, kWeight, kOut, kBias};
  const std::array<void*, 4> pointers = {memory.in, memory.weight, memory.out, memory.bias};
  const size_t count = has_bias_ ? 4 : 3;
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
  const Descriptor graph = operation_graph(target, problem);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& config : preferences(target, graph, mode)) {
      if (!is_exact(config)) continue;
      std::unique_ptr<ConvolutionPlan> plan = plan_of(target, config, problem.has_bias);
      if (plan && plan->workspace_bytes() <= most_workspace) return plan;
    }
  }
  return nullptr;
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
                  api().get_version(),
                  most_workspace >> 20),
      other_types(target, problem, most_workspace));
}

}  // namespace lockstep::kernels::cudnn
