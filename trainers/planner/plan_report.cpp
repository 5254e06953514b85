#include "trainers/planner/plan_report.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace lockstep::trainers {
namespace {

constexpr int64_t kLibraries = int64_t{1} << 30;  // CUDA's context, cuDNN's and NCCL's own memory

double mib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

std::string memory_line(std::string_view kind, int64_t bytes) {
  return fmt::format("  {:<44} {:>10.1f} MiB\n", kind, mib(bytes));
}

struct OpTotals {
  int64_t calls = 0, flops = 0, bytes = 0;
};

void add(OpTotals& totals, const LedgerEntry& entry) {
  ++totals.calls;
  totals.flops += entry.flops;
  totals.bytes += entry.bytes;
}

std::string op_line(std::string_view op, const OpTotals& totals) {
  return fmt::format("  {:<28} {:>6} {:>12.2f} {:>12.1f}\n",
                     op,
                     totals.calls,
                     static_cast<double>(totals.flops) / 1e9,
                     static_cast<double>(totals.bytes) / 1e6);
}

}  // namespace

int64_t TrainingPlan::workspace_bytes() const {
  int64_t most = 0;
  for (const PlannedConvolution& call : convolutions) most = std::max(most, call.workspace_bytes);
  return most;
}

int64_t TrainingPlan::needed_bytes() const {
  return step.memory.peak + workspace_bytes() + kLibraries;
}

int64_t TrainingPlan::bytes_per_image() const {
  const int64_t more = step.images - half_step.images;
  return more == 0 ? step.memory.peak - step.memory.fixed()
                   : (step.memory.peak - half_step.memory.peak) / more;
}

int64_t TrainingPlan::largest_batch() const {
  const int64_t room = card.memory_bytes - needed_bytes();
  return std::max<int64_t>(
      0, step.images + (room >= 0 ? room / bytes_per_image() : room / bytes_per_image() - 1));
}

std::string memory_text(const TrainingPlan& plan) {
  const StepMemory& memory = plan.step.memory;
  std::string text = "memory of a rank\n";
  text += memory_line("parameters and buffers, f32", memory.parameters);
  text += memory_line("16-bit copies of parameters", memory.copies);
  text += memory_line("optimizer state (SGD with momentum)", memory.optimizer);
  if (memory.average > 0) {
    text += memory_line("average of parameters and buffers (--ema)", memory.average);
  }
  text += memory_line("gradients of parameters, f32", memory.gradients);
  text += memory_line("activations that wait for backward()", memory.activations);
  text +=
      memory_line("short-lived, at the peak", memory.peak - memory.fixed() - memory.activations);
  text += memory_line(plan.no_engines.empty() ? "workspace of the largest convolution"
                                              : "workspace of convolutions: not known",
                      plan.workspace_bytes());
  text += memory_line("CUDA and libraries (a guess)", kLibraries);
  text += memory_line("together", plan.needed_bytes());
  text +=
      fmt::format("  of {:.1f} MiB on the card: {}\n",
                  mib(plan.card.memory_bytes),
                  plan.needed_bytes() <= plan.card.memory_bytes ? "it fits" : "IT DOES NOT FIT");
  text += fmt::format("  largest batch that fits: {} images a rank, {:.2f} MiB each\n",
                      plan.largest_batch(),
                      mib(plan.bytes_per_image()));
  return text;
}

std::string operations_text(const TrainingPlan& plan) {
  std::map<std::string_view, OpTotals> by_op;
  OpTotals all;
  for (const LedgerEntry& entry : plan.step.ledger) {
    add(by_op[entry.op], entry);
    add(all, entry);
  }
  std::string text = fmt::format(
      "operations of a step\n  {:<28} {:>6} {:>12} {:>12}\n", "op", "calls", "GFLOP", "MB moved");
  for (const auto& [op, totals] : by_op) text += op_line(op, totals);
  text += op_line("together", all);
  const double images = static_cast<double>(plan.step.images);
  text += fmt::format("  an image: {:.2f} GFLOP, {:.1f} MB\n",
                      static_cast<double>(all.flops) / 1e9 / images,
                      static_cast<double>(all.bytes) / 1e6 / images);
  return text;
}

std::string layers_text(const TrainingPlan& plan) {
  std::string text =
      fmt::format("layers, in both directions\n  {:<44} {:>12} {:>12}\n", "", "GFLOP", "MB moved");
  for (const LayerCost& layer : plan.step.layers) {
    text += fmt::format("  {:<44} {:>12.2f} {:>12.1f}\n",
                        layer.name,
                        static_cast<double>(layer.flops) / 1e9,
                        static_cast<double>(layer.bytes) / 1e6);
  }
  return text;
}

std::string convolutions_text(const TrainingPlan& plan) {
  std::string text = fmt::format("convolutions: {} distinct calls\n", plan.convolutions.size());
  if (!plan.no_engines.empty()) text += fmt::format("  no engines: {}\n", plan.no_engines);
  for (const PlannedConvolution& call : plan.convolutions) {
    text += fmt::format("  {}x {}: {:.1f} GFLOP, {:.1f} MB\n",
                        call.calls,
                        call.problem.text(),
                        static_cast<double>(call.flops) / 1e9,
                        static_cast<double>(call.bytes) / 1e6);
    if (call.choice.empty()) continue;
    text += fmt::format("     {}, workspace {:.1f} MiB", call.choice, mib(call.workspace_bytes));
    if (call.microseconds > 0) text += fmt::format(", {:.1f} us when timed", call.microseconds);
    text += "\n";
    for (const std::string& form : call.fused) text += fmt::format("     {}\n", form);
  }
  return text;
}

std::string speed_text(const TrainingPlan& plan) {
  const PredictionConstants& c = plan.constants;
  const double images = static_cast<double>(plan.step.images);
  const double flops = plan.precision.is_mixed() ? plan.card.half_flops : plan.card.f32_flops;
  std::string text = fmt::format(
      "speed of one {} in images a second (predicted, not measured)\n"
      "  {:.0f} GB/s, of which copies reach {:.2f}; {:.0f} TFLOP/s, of which products reach "
      "{:.2f};\n"
      "  an engine reaches {:.2f} of the limit op by op, and {:.1f} us go by for each op\n"
      "  {:<22} {:>9} {:>14} {:>14} {:>14} {:>10} {:>10}\n",
      plan.card.name,
      plan.card.dram_bytes_per_s / 1e9,
      c.dram,
      flops / 1e12,
      c.products,
      c.reached,
      c.launch_s * 1e6,
      "scheme",
      "MB/image",
      "traffic limit",
      "compute limit",
      "op by op",
      "predicted",
      "step, ms");
  for (const Scheme scheme : kSchemes) {
    const SchemePrediction p = predict(plan.step, scheme, plan.card, plan.precision, c);
    text += fmt::format("  {:<22} {:>9.1f} {:>14.0f} {:>14.0f} {:>14.0f} {:>10.0f} {:>10.2f}\n",
                        name_of(scheme),
                        p.bytes / 1e6 / images,
                        images / p.traffic_s,
                        images / p.compute_s,
                        images / p.limit_s,
                        images / p.predicted_s,
                        p.predicted_s * 1e3);
  }
  return text +
         "  this engine's kernels are of the second scheme, in layers that --autotune fuses of "
         "the third\n";
}

std::string scaling_text(const TrainingPlan& plan) {
  const PredictionConstants& c = plan.constants;
  const int64_t bytes = plan.step.memory.gradients;
  constexpr int64_t kBucket = int64_t{25} << 20;
  const double step_s =
      predict(plan.step, Scheme::kFusedBatchNorm, plan.card, plan.precision, c).predicted_s;
  std::string text = fmt::format(
      "scaling (predicted): {:.1f} MB of gradients in f32, {:.0f} GB/s of NVLink a direction, of "
      "which {:.2f} are reached,\n  {:.0f} us a round, two rounds; backward() hides all buckets "
      "but "
      "the last of 25 MiB, or nothing\n",
      static_cast<double>(bytes) / 1e6,
      plan.card.link_bytes_per_s / 1e9,
      c.link,
      c.latency_s * 1e6);
  for (int64_t ranks = 1; ranks <= plan.ranks; ranks *= 2) {
    const double all_s = all_reduce_s(bytes, ranks, plan.card, c);
    const double last_s = all_reduce_s(std::min(bytes, kBucket), ranks, plan.card, c);
    text += fmt::format(
        "  {:>3} rank{} {:>10.0f} images/s, efficiency {:.1f} % (nothing hidden: {:.1f} %), "
        "all-reduce {:.2f} ms\n",
        ranks,
        ranks == 1 ? " " : "s",
        static_cast<double>(ranks * plan.step.images) / (step_s + last_s),
        100 * step_s / (step_s + last_s),
        100 * step_s / (step_s + all_s),
        all_s * 1e3);
  }
  return text;
}

}  // namespace lockstep::trainers
