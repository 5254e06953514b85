#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "core/error.h"
#include "core/safetensors.h"
#include "core/version.h"
#include "trainers/checkpoint/checkpoint_reports.h"
#include "trainers/checkpoint/export_weights.h"
#include "trainers/checkpoint/state_tensors.h"
#include "trainers/cli/programs.h"
#include "trainers/cli/ranks_command.h"
#include "trainers/planner/convolution_plans.h"
#include "trainers/planner/plan_command.h"
#include "trainers/report/errors.h"

namespace lockstep::trainers {
namespace {

constexpr int kDifferent = 1;

int diff(const std::string& a, const std::string& b, size_t limit, std::ostream& out) {
  const Safetensors first = read_weights(a);
  const CheckpointDiff difference = diff_checkpoints(first, read_weights(b));
  out << format_diff(difference, limit);
  return difference.same() ? 0 : kDifferent;
}

void add_plan_options(CLI::App& command, PlanOptions& plan) {
  command.add_option("-a,--arch", plan.arch, "network")->capture_default_str();
  command.add_option("-b,--batch-size", plan.batch_size, "images a rank")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--gpu", plan.gpu, "a100, h100, h200, b200, or a card's description in a file")
      ->capture_default_str();
  command.add_option("--np", plan.ranks, "ranks, each with such a GPU")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--opt-level", plan.opt_level, "precision")
      ->check(CLI::IsMember({"O0", "O1", "O2", "O3"}))
      ->capture_default_str();
  command.add_option("--dtype", plan.dtype, "the 16-bit type")
      ->check(CLI::IsMember({"f16", "bf16"}))
      ->capture_default_str();
  command.add_flag("--layers", plan.layers, "list the cost of each layer too");
  command.add_option("--plan-file", plan.plan_file, "cuDNN's engines as --autotune left them");
  command.add_flag("--cifar-stem", plan.cifar_stem, "resnet18, resnet34: for images of 32x32");
  command.footer("Also --ema, --mixup and --larc, as the trainers take them.");
  command.allow_extras();
}

struct RanksOptions {
  comm::LaunchWishes wishes;
  int64_t rendezvous_timeout_s = 300;
};

void add_ranks_options(CLI::App& command, RanksOptions& ranks) {
  command.add_option(
      "--dist-url", ranks.wishes.url, "where they meet: tcp://HOST:PORT, file://PATH");
  command.add_option("--rank", ranks.wishes.rank, "number of this process")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--world-size", ranks.wishes.size, "number of ranks")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--rendezvous-timeout", ranks.rendezvous_timeout_s, "wait for others, in seconds")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
}

int run(int argc, const char* const* argv, std::ostream& out) {
  CLI::App app("Lockstep's tools: for what a run left, and before one.", "lockstep");
  app.set_version_flag("--version", fmt::format("lockstep {}", version()));
  app.require_subcommand(1);
  std::string first;
  std::string second;
  size_t limit = 10;
  CLI::App* diff_command = app.add_subcommand(
      "diff", "compare two checkpoints; exits 0 if and only if they hold the same bits");
  diff_command->add_option("A", first, "a checkpoint")->required();
  diff_command->add_option("B", second, "another")->required();
  diff_command->add_option("--limit", limit, "tensors to list")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI::App* inspect_command = app.add_subcommand("inspect", "list what a checkpoint holds");
  inspect_command->add_option("FILE", first, "a checkpoint")->required();
  std::string prefix;
  CLI::App* export_command = app.add_subcommand(
      "export", "write a checkpoint's weights for PyTorch: .pt, .pth or .safetensors");
  export_command->add_option("CHECKPOINT", first, "a .safetensors file, or one of torch.save")
      ->required();
  export_command->add_option("OUT", second, "the ending chooses the form")->required();
  export_command->add_option("--prefix", prefix, "put before all names: module.");
  PlanOptions plan;
  CLI::App* plan_command = app.add_subcommand(
      "plan", "memory, cuDNN's engines and predicted speed of training on a GPU; needs no GPU");
  add_plan_options(*plan_command, plan);
  CLI::App* describe_command = app.add_subcommand(
      "describe-gpu", "describe this machine's GPU, as plan --gpu FILE reads it");
  CLI::App* replay_command = app.add_subcommand(
      "replay", "take a diverged run's last steps again and name the tensor that it began in");
  replay_command->add_option("RUN_DIR", first, "what the run left")->required();
  RanksOptions ranks;
  CLI::App* ranks_command = app.add_subcommand(
      "ranks", "list the ranks that a launcher starts: mpirun -np 4 lockstep ranks");
  add_ranks_options(*ranks_command, ranks);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted, out, out);
  } catch (const CLI::ParseError& error) {
    throw UsageError("the command line is not understood", error.what(), "lockstep --help");
  }
  plan.training = plan_command->remaining();
  if (plan_command->parsed() || describe_command->parsed()) {
    out << (plan_command->parsed() ? plan_training(plan) : describe_present_gpu() + "\n");
    return 0;
  }
  if (ranks_command->parsed()) {
    return run_ranks(ranks.wishes, std::chrono::seconds(ranks.rendezvous_timeout_s));
  }
  if (diff_command->parsed()) return diff(first, second, limit, out);
  if (replay_command->parsed()) return run_replay({argv, argv + argc}, first);
  if (export_command->parsed()) {
    out << export_weights(first, second, prefix);
    return 0;
  }
  out << inspect_checkpoint(read_weights(first));
  return 0;
}

}  // namespace

int run_lockstep_tool(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  set_remedy_text(tool_advice);
  try {
    return run(argc, argv, out);
  } catch (const Error& error) {
    err << format_error(error);
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    err << format_error(InternalError(error.what()));
    return static_cast<int>(ExitCode::kInternal);
  }
}

}  // namespace lockstep::trainers
