#include "trainers/report/run_directory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/atomic_file.h"
#include "core/errno_text.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/words.h"
#include "trainers/config/rank_machine.h"
#include "trainers/config/run_files.h"
#include "trainers/report/mistakes.h"
#include "trainers/report/process.h"
#include "trainers/report/run_events.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockName = ".lock";
constexpr size_t kCopiedBytes = 1 << 16;  // of it at a time

[[noreturn]] void fail_to_lock(const Folder& folder, int error) {
  throw EnvironmentError(fmt::format("cannot lock {}", folder.path().string()),
                         errno_text(error),
                         "another --output-dir, one this user may write to");
}

std::string holder_text() {
  const RankPlace holder = this_place();
  return fmt::format("process {} on {} since {}",
                     holder.pid,
                     holder.host,
                     utc_text(std::chrono::system_clock::now()));
}

std::string read_start(const UniqueFd& file) {
  std::array<char, 400> text{};
  const ssize_t size = pread(file.get(), text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : "an unknown process";
}

}  // namespace

FolderLock::FolderLock(const Folder& folder)
    : file_(openat(folder.fd(), kLockName, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
  if (!file_.valid()) fail_to_lock(folder, errno);
  if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail_to_lock(folder, errno);
    throw UsageError(fmt::format("{} is in use by another run", folder.path().string()),
                     fmt::format("its lock is held by {}", printable(read_start(file_))),
                     "another --output-dir, or wait for that run to end");
  }
  const std::string text = holder_text();
  if (ftruncate(file_.get(), 0) != 0 || pwrite(file_.get(), text.data(), text.size(), 0) < 0) {
    fail_to_lock(folder, errno);
  }
}

bool FolderLock::is_broken() const {
  struct stat file = {};
  return fstat(file_.get(), &file) != 0 || file.st_nlink == 0;
}

namespace {

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

// Whether the folder holds anything to lose. The lock, empty files and folders, and unfinished
// writes of a killed process do not count.
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
  return fs::exists(path / kRunFile, unreadable) ||
         fs::exists(path / kCheckpointsFolder, unreadable);
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

// Creates the folder. A folder with somebody else's files gets no lock.
Folder prepare(const fs::path& path, ExistingRun existing) {
  create(path);
  std::error_code unreadable;
  const bool has_lock = fs::exists(path / kLockName, unreadable);
  if (existing == ExistingRun::kRefuse && !has_lock && holds_files(path)) refuse_existing(path);
  if (existing == ExistingRun::kContinue && !holds_run(path) && holds_files(path)) {
    refuse_existing(path);
  }
  return Folder(path);
}

void remove_files_of_run(const fs::path& path) {
  std::error_code error;
  for (const char* name : {kRunFile,
                           kMetricsFile,
                           kMistakesFile,
                           kNumericsFile,
                           kPlansFile,
                           kTraceFile,
                           kReportFile}) {
    if (fs::is_directory(path / name, error)) continue;  // no run made it
    fs::remove(path / name, error);
    if (error) refuse_environment(path / name, error.message());
  }
  remove_events(path);
  const fs::path checkpoints = path / kCheckpointsFolder;
  if (!fs::exists(checkpoints, error)) return;
  const fs::directory_iterator files(checkpoints, error);
  if (error) refuse_environment(checkpoints, error.message());
  for (const fs::directory_entry& file : files) {
    if (file.path().extension() != ".safetensors") continue;
    fs::remove(file.path(), error);
    if (error) refuse_environment(file.path(), error.message());
  }
}

void prove_writable(const Folder& folder) {
  constexpr const char* kProbe = ".tmp.probe";
  write_file_atomically(folder, kProbe, "probe");
  folder.remove(kProbe);
}

// Removes what a killed process left of unfinished writes. Requires: the lock.
void remove_unfinished(const Folder& folder) {
  for (const std::string& name : folder.names()) {
    if (name.starts_with(".tmp.")) folder.remove(name);
  }
}

bool holds_evaluation(const std::string& line) {
  const nlohmann::json metrics = nlohmann::json::parse(line, nullptr, false);
  if (!metrics.is_object()) return false;
  const auto split = metrics.find("split");
  return split == metrics.end() || *split != "train";
}

constexpr auto kAnyLine = [](const std::string& /*line*/) { return true; };

// Whether a line of metrics.jsonl, or numerics.json, is whole and not about a step after `last`.
bool is_up_to(const std::string& line, int64_t last) {
  const nlohmann::json metrics = nlohmann::json::parse(line, nullptr, false);
  if (!metrics.is_object()) return false;
  const auto step = metrics.find("step");
  return step == metrics.end() || !step->is_number_integer() || step->get<int64_t>() <= last;
}

}  // namespace

RunDirectory::Place::Place(const fs::path& path, ExistingRun existing)
    : folder(prepare(path, existing)), lock(folder), checkpoints(folder.inner(kCheckpointsFolder)) {
  if (existing == ExistingRun::kRefuse && holds_files(path)) refuse_existing(path);
  remove_unfinished(folder);
  prove_writable(folder);
  prove_writable(checkpoints);
  metrics = AppendedFile(folder, kMetricsFile);
}

RunDirectory::RunDirectory(const fs::path& path, ExistingRun existing, Tell tell)
    : path_(without_trailing_slash(path)), place_(path_, existing), tell_(std::move(tell)) {}

const Folder& RunDirectory::folder() {
  if (place_.folder.is_removed()) {
    begin_elsewhere("was removed");
  } else if (place_.lock.is_broken()) {
    try {
      place_.lock = FolderLock(place_.folder);
    } catch (const UsageError&) {
      begin_elsewhere("was given to another run: its lock was removed");
    }
  }
  if (const fs::path now = place_.folder.present_path(); now != path_) {
    say(fmt::format("the run directory {} was moved or replaced: this run goes on in {}",
                    path_.string(),
                    now.string()));
    path_ = now;
  }
  if (place_.metrics.is_removed()) keep_metrics(place_.metrics, kAnyLine);
  return place_.folder;
}

const Folder& RunDirectory::checkpoints() {
  const Folder& home = folder();
  Folder found = home.inner(kCheckpointsFolder);
  if (!found.is_same(place_.checkpoints)) {
    say(
        fmt::format("{} was removed or replaced: checkpoints are saved in a new one, those before "
                    "are not in it",
                    (path_ / kCheckpointsFolder).string()));
    place_.checkpoints = std::move(found);
  }
  return place_.checkpoints;
}

void RunDirectory::begin_elsewhere(const std::string& why) {
  const fs::path before = path_;
  const fs::path path = create_unused(before);
  std::optional<Place> left;
  try {
    left = std::exchange(place_, Place(path, ExistingRun::kRefuse));
  } catch (const UsageError& error) {  // somebody was faster
    throw EnvironmentError(error.what(), error.why(), error.hint());
  }
  path_ = path;
  keep_metrics(left->metrics, kAnyLine);
  if (!record_.empty()) write_file_atomically(place_.folder, kRunFile, record_);
  say(fmt::format(
      "the run directory {} {}: this run goes on in {}", before.string(), why, path.string()));
}

void RunDirectory::keep_metrics(const AppendedFile& from,
                                FunctionRef<bool(const std::string& line)> keeps) {
  AtomicFile kept(place_.folder, kMetricsFile);
  std::string lines;
  const auto write = [&] {
    kept.append(std::as_bytes(std::span(lines)));
    lines.clear();
  };
  from.for_each_line([&](const std::string& line) {
    if (keeps(line)) lines += line + "\n";
    if (lines.size() >= kCopiedBytes) write();
  });
  write();
  kept.flush();
  kept.take_place();
  place_.metrics = AppendedFile(place_.folder, kMetricsFile);
}

void RunDirectory::say(const std::string& what) const {
  if (tell_) tell_("lockstep: warning: " + what);
}

void RunDirectory::remove_earlier_run() {
  remove_files_of_run(path_);
  place_.metrics = AppendedFile(place_.folder, kMetricsFile);
}

void RunDirectory::become_latest() const {
  const fs::path runs = path_.parent_path();
  if (runs != "runs") return;
  try {
    link_atomically(Folder(runs), "latest", path_.filename());
  } catch (const EnvironmentError&) {  // links cannot be made, or a folder has the name
    return;
  }
}

void RunDirectory::write(const RunRecord& record) {
  record_ = to_json(record);
  write_file_atomically(folder(), kRunFile, record_);
}

void RunDirectory::append(std::string_view line) {
  folder();
  place_.metrics.append(line);
}

void RunDirectory::cut_metrics(int64_t step, bool begins_with_evaluation) {
  keep_metrics(place_.metrics, [&](const std::string& line) {
    const bool is_again = begins_with_evaluation && holds_evaluation(line);
    return is_up_to(line, is_again ? step - 1 : step);
  });
  const std::optional<std::string> report = contents_of(path_ / kNumericsFile, kMostBytes);
  if (report && !is_up_to(*report, step)) place_.folder.remove(kNumericsFile);
}

fs::path create_unused(const fs::path& path) {
  constexpr mode_t kByUmask = 0777;
  if (path.has_parent_path()) create(path.parent_path());
  fs::path unused = path;
  for (int number = 2; ::mkdir(unused.c_str(), kByUmask) != 0; ++number) {
    if (errno != EEXIST) refuse_environment(unused, errno_text());
    unused = fmt::format("{}-{}", path.string(), number);
  }
  return unused;
}

}  // namespace lockstep::trainers
