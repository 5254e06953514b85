#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <unistd.h>

#include "comm/connect.h"
#include "comm/die.h"
#include "comm/launch.h"
#include "comm/shared/thread_ranks.h"
#include "core/cuda/device.h"
#include "core/flight_recorder.h"
#include "core/version.h"
#include "core/words.h"
#include "engine/observe/flight_files.h"
#include "engine/observe/rank_process.h"
#include "kernels/support/isa.h"
#include "trainers/cli/programs.h"
#include "trainers/cli/train_run.h"
#include "trainers/config/config_from_flags.h"
#include "trainers/config/run_request.h"
#include "trainers/debug/replay_plan.h"
#include "trainers/flight/last_words.h"
#include "trainers/options/command_line.h"
#include "trainers/options/config_file.h"
#include "trainers/options/flag_table.h"
#include "trainers/options/parser.h"
#include "trainers/options/presets.h"
#include "trainers/report/errors.h"
#include "trainers/report/print.h"
#include "trainers/report/process.h"

namespace lockstep::trainers {
namespace {

const char* environment(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread starts
}

std::string version_text(Program program, bool verbose) {
  std::string text = fmt::format("Lockstep {} {}\n", version(), name_of(program));
  if (!verbose) return text;
#ifdef NDEBUG
  constexpr std::string_view kBuild = "release";
#else
  constexpr std::string_view kBuild = "with assertions";
#endif
  const int gpus = cuda::visible_devices();
  return text + fmt::format("compiler  {}\nbuild     {}\nkernels   {}\ndevices   cpu{}\n",
                            __VERSION__,
                            kBuild,
                            kernels::name_of(kernels::isa_level()),
                            gpus == 0 ? "" : fmt::format(", {} cuda", gpus));
}

bool printed_instead(const Options& options, bool prints) {
  std::string text;
  switch (options.request) {
    case Request::kRun:
      return false;
    case Request::kHelp:
      text = help_text(options.program);
      break;
    case Request::kHelpAll:
      text = help_all_text(options.program);
      break;
    case Request::kVersion:
      text = version_text(options.program, options.boolean("verbose"));
      break;
    case Request::kCompletion:
      text = bash_completion(options.program);
      break;
    case Request::kPrintConfig:
      make_run_request(options);  // what it refuses is no job
      text = config_text(options);
      break;
  }
  if (prints) print(stdout, text);
  return true;
}

// The command line may be refused later, so only --json and its variable are read.
bool asks_for_json(const std::vector<std::string>& words) {
  const char* const variable = environment("LOCKSTEP_JSON");
  const bool otherwise = variable != nullptr && parse_bool(variable).value_or(false);
  const bool is_there = std::ranges::count(words, "--json") > 0;
  const std::string value = value_in(words, "--json", is_there ? "true" : "");
  return value.empty() ? otherwise : parse_bool(value).value_or(true);
}

void tell_note(const std::string& text) {
  print_line(stderr, "note: " + text);
}

// Ends the process when the rank fails, because its peers wait for it.
int run_rank(Job job) {
  const StallWarning warning{.after = std::chrono::seconds(job.request.stall_warn_s),
                             .tell = tell_note};
  std::optional<FlightRecorder> recorder;
  std::optional<FlightFiles> flight;
  try {
    if (job.request.flight)
      recorder.emplace(job.ranks.rank(), job.ranks.size(), host_of_processes());
    job.flight = &flight.emplace(recorder ? &*recorder : nullptr);
    job.ranks.record_in(recorder ? &*recorder : nullptr);
    if (job.request.stall_warn_s > 0) job.ranks.warn_of_stalls(&warning);
    const ExitCode code = train_run(job);
    flight->end(code);
    job.ranks.record_in(nullptr);
    job.ranks.warn_of_stalls(nullptr);
    return static_cast<int>(code);
  } catch (const std::exception& error) {
    if (!flight) fail_rank(job.ranks, error);
    const Error known = as_error(error);
    flight->fail(known);
    const bool lost_a_peer = known.code() == ExitCode::kPeerLost;
    fail_rank(job.ranks, error, lost_a_peer ? last_words(flight->run(), job.ranks.rank()) : "");
  }
}

// Runs the ranks of --parallel dp.
int run_as_threads(const std::vector<std::string>& argv,
                   const Options& options,
                   const RunRequest& request) {
  const auto size = static_cast<int>(request.exchange.rank_threads);
  std::atomic<int> code = static_cast<int>(ExitCode::kInternal);  // until rank 0 has ended
  comm::spawn_ranks(
      size,
      [&](Communicator& ranks) {
        const int rank = ranks.rank();
        const comm::Launch launch{
            .rank = rank, .size = size, .local_rank = rank, .local_size = size};
        const int mine = run_rank({.argv = argv,
                                   .options = options,
                                   .request = request,
                                   .launch = launch,
                                   .ranks = ranks,
                                   .transport = "threads"});
        if (rank == 0) code = mine;
      },
      std::chrono::seconds(request.stall_abort_s));
  return code;
}

void refuse_two_kinds_of_ranks(const comm::Launch& launch) {
  if (launch.size == 1) return;
  throw UsageError("--parallel dp is one process, and the launcher started several",
                   "ranks are threads there, and processes under a launcher",
                   "the program without mpirun, or no --parallel dp");
}

// -1, which PyTorch's main.py accepts, leaves the value to the launcher.
std::optional<int> optional_count(const Options& options, std::string_view flag) {
  const int64_t value = options.maybe_integer(flag).value_or(-1);
  return value < 0 ? std::nullopt : std::optional(static_cast<int>(value));
}

comm::Launch launch_of(const Options& options) {
  const Setting* const url = options.find("dist-url");
  return comm::read_launch({.url = url == nullptr ? "" : url->value,
                            .rank = optional_count(options, "rank"),
                            .size = optional_count(options, "world-size"),
                            .local_rank = optional_count(options, "local-rank")});
}

// A process that has read its flags and, unless its ranks are threads, met its peers.
struct Started {
  RunRequest request = {};
  comm::Connection connection = {};
};

// Returns how the process ends where it cannot start; else nothing. Adds notes to the options.
std::optional<int> start(Options& options, const comm::Launch& launch, Started& started) {
  report_as_rank(launch.rank);
  RunRequest& request = started.request;
  try {
    request = make_run_request(options);
    if (request.exchange.rank_threads > 0) {
      refuse_two_kinds_of_ranks(launch);
      return std::nullopt;
    }
    started.connection =
        comm::connect(launch,
                      {.stall_abort = std::chrono::seconds(request.stall_abort_s),
                       .transport = request.exchange.transport,
                       .rendezvous_timeout = std::chrono::seconds(request.rendezvous_timeout_s),
                       .tell = tell_note,
                       .stop = stop_requested,
                       .lost_at_end = [](const Error& error) { comm::die(error); }});
    const std::string& note = started.connection.note;
    if (!note.empty()) options.notes.push_back("note: " + note);
  } catch (const Error& error) {
    // Each rank that was started by hand has a terminal of its own.
    if (launch.place) return report_error(with_meeting_advice(error), ErrorScope::kThisRank);
    return report_early_error(error);
  } catch (const std::exception& error) {
    return report_early_error(error);
  }
  return std::nullopt;
}

// Returns the job of a rank that is a process. Borrows its arguments.
Job job_of(const std::vector<std::string>& argv, const Options& options, const Started& started) {
  return {.argv = argv,
          .options = options,
          .request = started.request,
          .launch = started.connection.launch,
          .ranks = *started.connection.ranks,
          .transport = started.connection.transport};
}

}  // namespace

int run_train_program(Program program, int argc, char** argv) {
  install_stop_handlers();
  report_uncaught_errors();
  set_remedy_text(trainer_advice);
  comm::set_error_report(report_lost_peer);
  const std::vector<std::string> argv_copy(argv, argv + argc);
  Options options;
  comm::Launch launch;
  const char* const color = environment("LOCKSTEP_COLOR");
  choose_color(color_choice(value_in(argv_copy, "--color", color == nullptr ? "" : color)), false);
  enable_error_summary(asks_for_json(argv_copy));
  try {
    check_variables(environ);
    options = read_options(program, std::span(argv_copy).subspan(1), environment);
    enable_error_summary(options.request == Request::kRun && options.boolean("json"));
    launch = launch_of(options);
    if (printed_instead(options, launch.rank == 0)) return 0;
    choose_color(color_choice(options.text("color")), launch.launcher != comm::Launcher::kNone);
    if (const auto limit = options.maybe_integer("time-limit")) {
      stop_after(static_cast<double>(*limit));
    }
  } catch (const std::exception& error) {
    return report_early_error(error);
  }
  Started started;
  if (const std::optional<int> code = start(options, launch, started)) return *code;
  if (!started.connection.ranks) return run_as_threads(argv_copy, options, started.request);
  return run_rank(job_of(argv_copy, options, started));
}

int run_replay(const std::vector<std::string>& argv, const std::string& run_directory) {
  ReplayPlan plan;
  Options options;
  comm::Launch launch;
  try {
    launch = comm::read_launch();
    plan = read_replay_plan(run_directory);
    options = read_options(plan.program, plan.arguments, [](const char*) { return nullptr; });
    const Setting* const folder = options.find("data");
    const std::filesystem::path data = folder == nullptr ? "" : folder->value;
    if (!data.empty() && data.is_relative() && !std::filesystem::exists(data)) {
      throw DataError(fmt::format("the run's data are not here: {}", data.string()),
                      "the path is relative to the folder where the run was started",
                      "start the replay there");
    }
  } catch (const std::exception& error) {
    return report_early_error(error);
  }
  Started started;
  if (const std::optional<int> code = start(options, launch, started)) return *code;
  Job job = job_of(argv, options, started);
  job.replay = plan;
  return run_rank(std::move(job));
}

}  // namespace lockstep::trainers
