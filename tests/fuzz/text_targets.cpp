// Text that people write, and text that runs leave.
#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "core/words.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/target.h"
#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/debug/planted_fault.h"
#include "trainers/options/command_line.h"
#include "trainers/options/config_file.h"
#include "trainers/page/run_curves.h"
#include "trainers/planner/plan_file.h"
#include "trainers/report/event_file.h"
#include "trainers/report/run_record.h"
#include "trainers/timeline/read_trace.h"
#include "trainers/timeline/trace_file.h"

namespace lockstep::fuzz {
namespace {

using namespace trainers;

// An argument a line. Files that the arguments name are not read.
void read_arguments(std::string_view input) {
  const std::vector<std::string_view> lines = split_words(input, '\n');
  const std::vector<std::string> arguments(lines.begin(), lines.end());
  for (const std::string& argument : arguments) {
    if (argument.starts_with("-c") || argument.starts_with("--c")) return;
  }
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  for (const Program program : {Program::kTrainConvnet, Program::kTrainResnet}) {
    const Options options = read_options(program, arguments, nothing);
    (void)config_text(options);
  }
}

std::vector<std::string> argument_seeds() {
  return {"-b\n64\n--lr=0.1\n--amp\n",
          "--preset\ndemo-baseline\n-e\n3\n",
          "-a\nresnet50\n--print-config\n"};
}

void read_config(std::string_view input) {
  (void)parse_config(input, "file");
}

std::vector<std::string> config_seeds() {
  std::string dotted = "a";  // as long as it has to be to overflow the stack of a recursive reader
  for (int depth = 0; depth < 100'000; ++depth) dotted += ".a";
  return {"# a comment\nlr = 0.1\narch = \"resnet20\"\namp = true\nmilestones = [1, 2]\n",
          "\"batch-size\" = 0x20\noutput-dir = 'C:\\x' # y\nname = \"\\u00e9\\n\"\n",
          dotted + " = 1\n"};
}

void read_run_record(std::string_view input) {
  const RunRecord record = run_record_of(std::string(input), "run.json");
  (void)run_record_of(to_json(record), "run.json");  // what was read is written soundly
}

std::vector<std::string> run_record_seeds() {
  RunRecord record;
  record.argv = {"train_convnet", "-b", "64"};
  record.flags = {{"batch-size", "64", "command line"}};
  record.versions = {{"lockstep", "0.1.0"}};
  record.ranks.resize(2);
  const std::string begun = to_json(record);
  record.exit_code = ExitCode::kDone;
  record.final_metrics.emplace();
  record.digest = 42;
  return {begun, to_json(record)};
}

void read_metrics(std::string_view input) {
  (void)read_curves(as_file(input));
}

std::vector<std::string> metrics_seeds() {
  return {
      "{\"split\":\"train\",\"step\":10,\"epoch\":0,\"loss\":2.3,\"img_s\":100,\"slowest_rank\":1,"
      "\"skew\":0.2}\n{\"split\":\"val\",\"step\":20,\"epoch\":1,\"acc1\":50.5}\n{\"split\":"};
}

void read_plan(std::string_view input) {
  const PlanFile plans = parse_plans(std::string(input), "plans.json");
  if (digest_of(parse_plans(to_json(plans), "plans.json").engines) != digest_of(plans.engines)) {
    throw std::logic_error("plans are not what was written");
  }
}

std::vector<std::string> plan_seeds() {
  return {to_json(PlanFile{
      .origin = {.cudnn = "9.19.0", .card = "NVIDIA H200 (sm_90)"},
      .engines = {
          {"conv", {.engine = "eng0{k1=2}", .microseconds = 1.5, .workspace_bytes = 64}}}})};
}

// Lines "key=value": the metadata of a checkpoint.
void read_record(std::string_view input) {
  Texts metadata;
  for (const std::string_view line : split_words(input, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    metadata[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  check_version(metadata, "file");
  const CheckpointRecord record = record_of(metadata, "file");
  if (!(record_of(to_metadata(record), "file").run == record.run)) {
    throw std::logic_error("a record is not what was written");
  }
  (void)recorded_evaluation(metadata, "file");
}

std::vector<std::string> record_seeds() {
  CheckpointRecord record;
  record.run.program = "train_convnet";
  record.run.arch = "convnet";
  record.run.global_batch = 64;
  record.run.environment = {{"isa", "x86-64-v3"},
                            {"lockstep", "0.1.0"},
                            {"onednn", "2.6.3"},
                            {"predivide", "1"},
                            {"wire", "f32"}};
  record.run.settings = {{"lr", "0.1"}};
  record.position.steps = record.position.applied = 10;
  record.model_digest = "xxh3-128:0";
  std::string lines;
  for (const auto& [key, value] : to_metadata(record)) lines += key + '=' + value + '\n';
  return {lines};
}

void read_trace_file(std::string_view input) {
  (void)read_trace(as_file(input));
}

std::vector<std::string> trace_seeds() {
  const auto at = [](int ms) { return Timeline::Clock::time_point(std::chrono::milliseconds(ms)); };
  const std::vector<Timeline::Span> spans = {
      {.name = kStepSpan, .number = 1, .begin = at(1), .end = at(9)},
      {.name = kLoaderWaitSpan, .begin = at(1), .end = at(2)},
      {.name = kExchangeSpan, .begin = at(4), .end = at(5)},
      {.name = kSumsSpan, .begin = at(4), .end = at(6)}};
  const std::vector<comm::ClockOffset> clocks(1);
  return {trace_header({.first_step = 1,
                        .last_step = 1,
                        .device = "cpu",
                        .clocks_before = clocks,
                        .clocks_after = clocks}) +
          trace_events({.rank = 0, .spans = spans, .clock = {}, .origin = {}}) +
          std::string(kTraceEnd)};
}

void read_fault(std::string_view input) {
  (void)parse_fault(std::string(input));
}

std::vector<std::string> fault_seeds() {
  return {
      "kill:rank=1,step=20", "inf:rank=0,step=3,count=2,layer=conv1,value=1e5", "slow:rank=1,ms=5"};
}

// A run that goes on reads the file of the run before.
void read_events(std::string_view input) {
  const auto folder = scratch() / "events";
  std::filesystem::create_directories(folder);
  testing::write_text(folder / "events.out.tfevents.1.host.1.0", input);
  EventFile events(folder, 10);
  events.append(11, {});
}

std::vector<std::string> event_seeds() {
  const auto folder = scratch() / "event_seed";
  std::filesystem::remove_all(folder);
  {
    EventFile events(folder, 0);
    events.append(1, std::vector<std::string>{"\x0a\x01x"});
  }
  return {testing::read_text(event_file_in(folder))};
}

constexpr Target kTextTargets[] = {
    {"options", read_arguments, argument_seeds},
    {"config", read_config, config_seeds},
    {"run_record", read_run_record, run_record_seeds},
    {"metrics", read_metrics, metrics_seeds},
    {"plans", read_plan, plan_seeds},
    {"checkpoint_record", read_record, record_seeds},
    {"trace", read_trace_file, trace_seeds},
    {"fault", read_fault, fault_seeds},
    {"events", read_events, event_seeds},
};

}  // namespace

std::span<const Target> text_targets() {
  return kTextTargets;
}

}  // namespace lockstep::fuzz
