#include "inspect/cli/lockstep_tool.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/safetensors.h"
#include "core/version.h"
#include "core/words.h"
#include "engine/state/state_tensors.h"
#include "inspect/cli/doctor_command.h"
#include "inspect/cli/ranks_command.h"
#include "inspect/cli/report_command.h"
#include "inspect/cli/watch_command.h"
#include "inspect/flight/describe_flight.h"
#include "inspect/plan/convolution_plans.h"
#include "inspect/plan/plan_command.h"
#include "inspect/plan/scale_report.h"
#include "inspect/runs/run_list.h"
#include "inspect/trace/step_bounds.h"
#include "inspect/weights/checkpoint_reports.h"
#include "inspect/weights/export_weights.h"
#include "trainers/cli/programs.h"
#include "trainers/flight/read_flight.h"
#include "trainers/report/errors.h"
#include "trainers/timeline/read_trace.h"

namespace lockstep::trainers {
namespace {

constexpr int kDifferent = 1;

// A subcommand and what it does, which returns the exit code.
struct Command {
  CLI::App* app;
  std::function<int()> run;
};

Command diff_command(CLI::App& app, std::ostream& out) {
  struct Options {
    std::string first, second;
    size_t limit = 10;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand(
      "diff", "compare two checkpoints; exits 0 if and only if they hold the same bits");
  command->add_option("A", options->first, "a checkpoint, or a run directory")->required();
  command->add_option("B", options->second, "another")->required();
  command->add_option("--limit", options->limit, "tensors to list")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  return {command, [&out, options] {
            Safetensors first = read_weights(options->first);
            Safetensors second = read_weights(options->second);
            for (Safetensors* file : {&first, &second}) {
              file->tensors = without_wrappers(std::move(file->tensors));
            }
            const CheckpointDiff difference = diff_checkpoints(first, second);
            out << format_diff(difference, options->limit);
            return difference.same() ? 0 : kDifferent;
          }};
}

Command inspect_command(CLI::App& app, std::ostream& out) {
  const auto file = std::make_shared<std::string>();
  CLI::App* const command = app.add_subcommand("inspect", "list what a checkpoint holds");
  command->add_option("FILE", *file, "a checkpoint, or a run directory")->required();
  return {command, [&out, file] {
            out << inspect_checkpoint(read_weights(*file));
            return 0;
          }};
}

Command export_command(CLI::App& app, std::ostream& out) {
  struct Options {
    std::string from, to, prefix;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand(
      "export", "write a checkpoint's weights for PyTorch: .pt, .pth or .safetensors");
  command
      ->add_option(
          "CHECKPOINT", options->from, "a checkpoint, a file of torch.save, or a run directory")
      ->required();
  command->add_option("OUT", options->to, "the extension selects the format")->required();
  command->add_option("--prefix", options->prefix, "put before all names: module.");
  return {command, [&out, options] {
            out << export_weights(options->from, options->to, options->prefix);
            return 0;
          }};
}

void add_plan_options(CLI::App& command, PlanOptions& plan) {
  command
      .add_option("--gpu", plan.gpu, "a100, h100, h200, b200, or a card's description in a file")
      ->capture_default_str();
  command.add_option("--np", plan.ranks, "ranks, each with such a GPU")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  auto* const layers = command.add_flag("--layers", plan.layers, "list the cost of each layer too");
  command.add_flag("--json", plan.json, "print one JSON object")->excludes(layers);
  command.add_option("--plan-file", plan.plan_file, "cuDNN's engines as --autotune left them");
  command.footer(
      "Also the trainers' flags that a step depends on: -a (resnet50), -b (256), --opt-level (O2), "
      "--dtype,\n--preset, --opt, --ema, --mixup, --train-crop-size, --cifar-stem, --shards and "
      "more.");
  command.allow_extras();
}

Command plan_command(CLI::App& app, std::ostream& out) {
  const auto plan = std::make_shared<PlanOptions>();
  CLI::App* const command = app.add_subcommand(
      "plan", "memory, cuDNN's engines and predicted speed of training on a GPU; needs no GPU");
  add_plan_options(*command, *plan);
  return {command, [&out, plan, command] {
            plan->training = command->remaining();
            out << plan_training(*plan);
            return 0;
          }};
}

Command describe_gpu_command(CLI::App& app, std::ostream& out) {
  CLI::App* const command = app.add_subcommand(
      "describe-gpu", "describe this machine's GPU, as plan --gpu FILE reads it");
  return {command, [&out] {
            out << describe_present_gpu() << "\n";
            return 0;
          }};
}

Command replay_command(CLI::App& app, const std::vector<std::string>& argv) {
  const auto directory = std::make_shared<std::string>();
  CLI::App* const command = app.add_subcommand(
      "replay",
      "repeat a diverged run's last steps and name the first tensor with an infinity or NaN");
  command->add_option("RUN_DIR", *directory, "a run directory")->required();
  return {command, [&argv, directory] { return run_replay(argv, *directory); }};
}

Command trace_command(CLI::App& app, std::ostream& out) {
  const auto file = std::make_shared<std::string>();
  CLI::App* const command =
      app.add_subcommand("trace", "what bound each step of a run's timeline, in ten lines");
  command->add_option("FILE", *file, "a trace.json, or the run directory that has it")->required();
  return {command, [&out, file] {
            out << describe_trace(read_trace(*file));
            return 0;
          }};
}

Command scale_command(CLI::App& app, std::ostream& out) {
  struct Options {
    std::vector<std::string> timings;
    int64_t images = 1'281'167;
    double epochs = 90;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand(
      "scale-report", "images/s and efficiency of one training on several numbers of GPUs");
  command->add_option("GPUS:SECONDS", options->timings, "a training: 2:74211 4:39536")->required();
  command->add_option("--images", options->images, "images of an epoch [ImageNet's]")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--epochs", options->epochs, "epochs of each training")
      ->check([](const std::string& text) {
        return parse_float(text).value_or(0) > 0 ? "" : "it is not a number above 0";
      })
      ->capture_default_str();
  return {command, [&out, options] {
            const auto timings = parse_timings(options->timings);
            out << scale_report(scale_rows(timings, options->images, options->epochs));
            return 0;
          }};
}

Command ranks_command(CLI::App& app) {
  struct Options {
    comm::LaunchOptions launch;
    int64_t rendezvous_timeout_s = 300;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand(
      "ranks", "list the ranks that a launcher starts: mpirun -np 4 lockstep ranks");
  command->add_option(
      "--dist-url", options->launch.url, "where they meet: tcp://HOST:PORT, file://PATH");
  command->add_option("--rank", options->launch.rank, "number of this process")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--world-size", options->launch.size, "number of ranks")
      ->check(CLI::Range(1, 65536));
  command
      ->add_option(
          "--rendezvous-timeout", options->rendezvous_timeout_s, "wait for others, in seconds")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  return {command, [options] {
            return run_ranks(options->launch, std::chrono::seconds(options->rendezvous_timeout_s));
          }};
}

Command doctor_command(CLI::App& app, std::ostream& out) {
  const auto ranks_alone = std::make_shared<bool>(false);
  CLI::App* const command = app.add_subcommand(
      "doctor", "what this machine has for training, and what is missing; exits 0 if it can train");
  command->add_flag("--ranks", *ranks_alone, "print only how many ranks suit this machine");
  return {command, [&out, ranks_alone] { return run_doctor(out, *ranks_alone); }};
}

Command report_command(CLI::App& app, std::ostream& out) {
  struct Options {
    std::vector<std::string> runs;
    std::string file;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("report", "write an HTML page of one run, or of several for comparison");
  command->add_option("RUN", options->runs, "run directories")->required();
  command->add_option(
      "-o,--output", options->file, "the page [RUN/report.html; of several runs report.html here]");
  return {command, [&out, options] {
            out << run_report(options->runs, options->file);
            return 0;
          }};
}

Command runs_command(CLI::App& app, std::ostream& out) {
  struct Options {
    std::string folder = "runs";
    std::string order{kRunOrders[0]};
  };
  const auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand(
      "runs", "list the runs of a folder, the newest first, and what they reached");
  command->add_option("DIR", options->folder, "holds run directories")->capture_default_str();
  command->add_option("--sort", options->order, "what comes first: the newest, the best, ...")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kRunOrders), std::end(kRunOrders))))
      ->capture_default_str();
  return {command, [&out, options] {
            const auto* const order = std::ranges::find(kRunOrders, options->order);
            out << list_runs(options->folder, static_cast<RunOrder>(order - kRunOrders));
            return 0;
          }};
}

Command compare_command(CLI::App& app, std::ostream& out) {
  const auto runs = std::make_shared<std::vector<std::string>>();
  CLI::App* const command = app.add_subcommand(
      "compare", "two to eight runs: flags that differ, what they reached, time, bits");
  command->add_option("RUN", *runs, "run directories")->required()->expected(2, 8);
  return {command, [&out, runs] {
            out << compare_runs(view_runs(*runs));
            return 0;
          }};
}

Command watch_command(CLI::App& app) {
  struct Options {
    std::string run;
    bool once = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* const command = app.add_subcommand(
      "watch", "follow a run in the terminal: curves, ranks, speed; Ctrl-C leaves the run alone");
  command->add_option("RUN", options->run, "a run directory, such as runs/latest")->required();
  command->add_flag("--once", options->once, "print one picture and stop");
  return {command, [options] { return run_watch(options->run, options->once); }};
}

Command flight_command(CLI::App& app, std::ostream& out) {
  const auto directory = std::make_shared<std::string>();
  CLI::App* const command = app.add_subcommand(
      "flight", "what each rank of a run did last, and who waits for whom; also while it runs");
  command->add_option("RUN", *directory, "a run directory, such as runs/latest")->required();
  return {command, [&out, directory] {
            out << describe_flight(read_flights(*directory));
            return 0;
          }};
}

// CLI11 only says that a subcommand is required.
void refuse_unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || *argv[1] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::ranges::count(names, argv[1]) > 0) return;
  const std::vector<std::string_view> words(names.begin(), names.end());
  const std::string_view nearest = nearest_word(argv[1], words);
  throw UsageError(
      fmt::format("lockstep has no command {}", printable(argv[1])),
      fmt::format("its commands are {}", fmt::join(names, ", ")),
      nearest.empty() ? "lockstep --help" : fmt::format("did you mean lockstep {}?", nearest));
}

int run(const std::vector<std::string>& argv, const char* const* arguments, std::ostream& out) {
  CLI::App app(
      "Lockstep's tools: inspect runs and checkpoints, check this machine, and plan a training.",
      "lockstep");
  app.set_version_flag("--version", fmt::format("lockstep {}", version()));
  app.require_subcommand(1);
  const Command commands[] = {diff_command(app, out),
                              inspect_command(app, out),
                              export_command(app, out),
                              plan_command(app, out),
                              describe_gpu_command(app, out),
                              replay_command(app, argv),
                              trace_command(app, out),
                              scale_command(app, out),
                              ranks_command(app),
                              doctor_command(app, out),
                              report_command(app, out),
                              runs_command(app, out),
                              compare_command(app, out),
                              watch_command(app),
                              flight_command(app, out)};
  const auto argc = static_cast<int>(argv.size());
  refuse_unknown_command(app, argc, arguments);
  try {
    app.parse(argc, arguments);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted, out, out);
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
    throw UsageError("the command line is not understood",
                     error.what(),
                     fmt::format("lockstep{} --help", command));
  }
  const auto* const chosen =
      std::ranges::find_if(commands, [](const Command& c) { return c.app->parsed(); });
  return chosen->run();
}

}  // namespace

int run_lockstep_tool(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  set_remedy_text(tool_advice);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on file sizes fails, and is told
  try {
    std::ostringstream text;  // names from files and of folders come in many places
    const int code = run({argv, argv + argc}, argv, text);
    out << without_controls(text.str());
    return code;
  } catch (const std::exception& error) {
    const Error known = as_error(error);
    err << format_error(known);
    return static_cast<int>(known.code());
  }
}

}  // namespace lockstep::trainers
