#include "trainers/report/run_directory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <system_error>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/words.h"
#include "trainers/report/mistakes.h"
#include "trainers/report/process.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, int error) {
  throw EnvironmentError(fmt::format("cannot lock {}", path.string()),
                         std::generic_category().message(error),
                         "another --output-dir, one this user may write to");
}

std::string holder_text() {
  const RankPlace here = this_place();
  return fmt::format(
      "process {} on {} since {}", here.pid, here.host, utc_text(std::chrono::system_clock::now()));
}

std::string read_start(int fd) {
  std::array<char, 400> text{};
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : "an unknown process";
}

}  // namespace

FileLock::FileLock(const fs::path& path)
    : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
  if (fd_ < 0) fail(path, errno);
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    const std::string holder = read_start(fd_);
    close(fd_);
    if (error != EWOULDBLOCK) fail(path, error);
    throw UsageError(fmt::format("{} is in use by another run", path.parent_path().string()),
                     fmt::format("its lock is held by {}", printable(holder)),
                     "another --output-dir, or wait for that run to end");
  }
  const std::string text = holder_text();
  if (ftruncate(fd_, 0) != 0 ||
      pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    const int error = errno;
    close(fd_);
    fail(path, error);
  }
}

FileLock::~FileLock() {
  close(fd_);
}

namespace {

constexpr const char* kLockName = ".lock";

[[noreturn]] void refuse_environment(const fs::path& path, const std::string& why) {
  throw EnvironmentError(fmt::format("cannot use {} as the run directory", path.string()),
                         why,
                         "--output-dir DIR with a folder that this user may create or write to");
}

void create(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) refuse_environment(path, error.message());
}

// Whether anything would be lost: the lock, empty files and folders, and what a killed process left
// of an unfinished write do not count.
bool holds_files(const fs::path& path) {
  std::error_code error;
  const fs::directory_iterator files(path, error);
  if (error) refuse_environment(path, error.message());
  return std::any_of(begin(files), end(files), [](const fs::directory_entry& file) {
    const std::string name = file.path().filename().string();
    if (name == kLockName || name.starts_with(".tmp.")) return false;
    std::error_code unreadable;
    return !fs::is_empty(file.path(), unreadable) || unreadable;
  });
}

bool holds_run(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path / "run.json", unreadable) || fs::exists(path / "checkpoints", unreadable);
}

fs::path without_trailing_slash(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

[[noreturn]] void refuse_existing(const fs::path& path) {
  throw UsageError(fmt::format("the run directory {} is not empty", path.string()),
                   "files of two runs must not mix",
                   "another --output-dir, or --overwrite to replace the run in it");
}

// Creates the folder and returns its lock's path. A folder of somebody else's files gets no lock.
fs::path prepare(const fs::path& path, ExistingRun existing) {
  create(path);
  const fs::path lock = path / kLockName;
  std::error_code unreadable;
  const bool has_lock = fs::exists(lock, unreadable);
  if (existing == ExistingRun::kRefuse && !has_lock && holds_files(path)) refuse_existing(path);
  if (existing == ExistingRun::kContinue && !holds_run(path) && holds_files(path)) {
    refuse_existing(path);
  }
  return lock;
}

void remove_earlier_run(const fs::path& path) {
  std::error_code error;
  for (const char* name :
       {"run.json", "metrics.jsonl", kMistakesFile, kNumericsFile, kPlansFile, kTraceFile}) {
    fs::remove(path / name, error);
    if (error) refuse_environment(path / name, error.message());
  }
  remove_events(path);
  const fs::path checkpoints = path / "checkpoints";
  if (!fs::exists(checkpoints, error)) return;
  const fs::directory_iterator files(checkpoints, error);
  if (error) refuse_environment(checkpoints, error.message());
  for (const fs::directory_entry& file : files) {
    if (file.path().extension() != ".safetensors") continue;
    fs::remove(file.path(), error);
    if (error) refuse_environment(file.path(), error.message());
  }
}

void prove_writable(const fs::path& path) {
  const fs::path probe = path / ".tmp.probe";
  write_file_atomically(probe, "probe");
  std::error_code error;
  fs::remove(probe, error);
  if (error) refuse_environment(path, error.message());
}

// A convenience: where links cannot be made, or a folder of that name is in the way, there is none.
void point_latest_at(const fs::path& path) {
  const fs::path runs = path.parent_path();
  if (runs != "runs") return;
  try {
    link_atomically(runs / "latest", path.filename());
  } catch (const EnvironmentError&) {
    return;
  }
}

// Whether a line of metrics.jsonl, or numerics.json, is whole and not about a step after `last`.
bool is_up_to(const std::string& line, int64_t last) {
  const nlohmann::json metrics = nlohmann::json::parse(line, nullptr, false);
  if (!metrics.is_object()) return false;
  const auto step = metrics.find("step");
  return step == metrics.end() || !step->is_number_integer() || step->get<int64_t>() <= last;
}

}  // namespace

RunDirectory::RunDirectory(const fs::path& path, ExistingRun existing)
    : path_(without_trailing_slash(path)), lock_(prepare(path_, existing)) {
  if (existing == ExistingRun::kRefuse && holds_files(path_)) refuse_existing(path_);
  if (existing == ExistingRun::kOverwrite) remove_earlier_run(path_);
  prove_writable(path_);
  create(checkpoints());
  prove_writable(checkpoints());
  metrics_file_ = AppendedFile(metrics());
  point_latest_at(path_);
}

void RunDirectory::write(const RunRecord& record) const {
  write_file_atomically(path_ / "run.json", to_json(record));
}

void RunDirectory::append(std::string_view line) const {
  metrics_file_.append(line);
}

void RunDirectory::cut_metrics(int64_t step) {
  std::ifstream file(metrics(), std::ios::binary);
  std::string kept;
  std::string line;
  while (std::getline(file, line)) {
    if (is_up_to(line, step)) kept += line + "\n";
  }
  write_file_atomically(metrics(), kept);
  metrics_file_ = AppendedFile(metrics());
  const std::optional<std::string> report = contents_of(path_ / kNumericsFile);
  if (report && !is_up_to(*report, step)) fs::remove(path_ / kNumericsFile);
}

fs::path unused_path(const fs::path& path) {
  fs::path unused = path;
  std::error_code error;  // a path that cannot be looked at is refused when it is opened
  for (int number = 2; fs::exists(unused, error); ++number) {
    unused = fmt::format("{}-{}", path.string(), number);
  }
  return unused;
}

void RunLog::append(std::initializer_list<Metric> metrics) {
  if (directory_ == nullptr) return;
  const std::string line = to_json_line(metrics);
  console_->progress_json(line);
  attempt([&] { directory_->append(line); });
}

void RunLog::append_step(int epoch, int64_t step, const StepMetrics& metrics) {
  append({{"split", "train"},
          {"epoch", int64_t{epoch}},
          {"step", step},
          {"t", seconds_since_process_start()},
          {"loss", metrics.loss},
          {"loss_avg", metrics.loss_avg},
          {"acc1", metrics.acc1},
          {"acc5", metrics.acc5},
          {"lr", metrics.lr},
          {"img_s", metrics.images_per_s},
          {"step_s", metrics.step_s_avg},
          {"data_s", metrics.data_s_avg},
          {"comm_exposed_s", metrics.comm_exposed_s},
          {"comm_hidden_s", metrics.comm_hidden_s},
          {"slowest_rank", int64_t{metrics.slowest_rank}},
          {"skew", metrics.skew},
          {"loader_waited", metrics.loader_waited},
          {"loader_busy_with", metrics.loader_busy_with},
          {"loss_scale", metrics.loss_scale},
          {"skipped_steps", metrics.skipped_steps}});
  train_ = metrics;
  if (events_) attempt([&] { events_->after_step(step, metrics); });
}

void RunLog::append_evaluation(std::string_view split,
                               int epoch,
                               int64_t step,
                               const Evaluation& evaluation,
                               std::string_view digest) {
  append({{"split", split},
          {"epoch", int64_t{epoch}},
          {"step", step},
          {"t", seconds_since_process_start()},
          {"loss", evaluation.loss},
          {"acc1", evaluation.acc1()},
          {"acc5", evaluation.acc5()},
          {"correct", evaluation.correct1},
          {"total", evaluation.total},
          {"digest", digest}});
  if (!events_ || split != "val") return;
  attempt([&] { events_->after_epoch(epoch, step, train_, evaluation); });
}

void RunLog::append_epoch(const EpochCsv& csv, const EpochRow& row) {
  attempt([&] { csv.append(row); });
}

void RunLog::begin_events(FunctionRef<EventOpening()> opening) {
  if (events_) attempt([&] { events_->begin(opening); });
}

void RunLog::append_histograms(int64_t step, std::span<const NamedValues> tensors) {
  if (events_) attempt([&] { events_->histograms(step, tensors); });
}

void RunLog::end_events(int64_t step) {
  if (events_) attempt([&] { events_->end(step); });
}

void RunLog::write_numerics(const std::string& text) {
  attempt([&] { write_file_atomically(directory_->path() / kNumericsFile, text); });
}

void RunLog::attempt(FunctionRef<void()> write) {
  if (directory_ == nullptr) return;
  try {
    write();
  } catch (const EnvironmentError& error) {
    if (std::exchange(lost_, true)) return;
    console_->warn(
        fmt::format("lockstep: warning: {}\n  why: {}\n  try: {}; training goes on, lines are lost",
                    error.what(),
                    error.why(),
                    advice_of(error)));
  }
}

}  // namespace lockstep::trainers
