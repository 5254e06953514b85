#include "trainers/checkpoint/kept_state.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/gather.h"
#include "core/atomic_file.h"
#include "core/errno_text.h"
#include "core/error.h"
#include "core/input_file.h"
#include "core/words.h"
#include "trainers/checkpoint/save_files.h"

namespace lockstep::trainers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJobVariable = "LOCKSTEP_JOB";

// Other users share the file system and may have made the folder.
void own_folder(const fs::path& folder) {
  const auto refuse = [&](const std::string& why) {
    throw EnvironmentError(fmt::format("cannot keep the training's state in {}", folder.string()),
                           why,
                           "remove it, or train without --keep-in-memory");
  };
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    refuse(errno_text());
  }
  struct stat status = {};
  if (::lstat(folder.c_str(), &status) != 0) refuse(errno_text());
  const bool is_own = S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
  if (!is_own || (status.st_mode & 077) != 0) refuse("it is not a folder of this user alone");
}

// Bytes of the files in a folder.
uint64_t bytes_in(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    const uintmax_t size = file.file_size(error);
    if (!error) bytes += size;
  }
  return bytes;
}

// Copies the owner's file to rank 0. A collective call.
void bring(Communicator& ranks, int owner, const fs::path& from, const fs::path& to) {
  std::string bytes;
  if (ranks.rank() == owner) bytes = contents_of(from).value_or("");
  auto size = static_cast<int64_t>(bytes.size());
  ranks.broadcast(std::as_writable_bytes(std::span(&size, 1)), owner);
  bytes.resize(static_cast<size_t>(size));
  ranks.broadcast(std::as_writable_bytes(std::span(bytes)), owner);
  if (ranks.rank() == 0) write_file_atomically(to, bytes);
}

}  // namespace

fs::path kept_state_folder() {
  const char* const job = std::getenv(kJobVariable);  // NOLINT(concurrency-mt-unsafe)
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
  };
  const std::string_view name = job == nullptr ? "" : job;
  if (name.empty() || name.size() > 100 || !std::ranges::all_of(name, is_part)) {
    throw UsageError("nothing would use the state that --keep-in-memory keeps",
                     "no launcher that restarts the job has set LOCKSTEP_JOB",
                     "scripts/run --max-restarts N, or leave --keep-in-memory out");
  }
  return fmt::format("/dev/shm/lockstep.{}.{}", ::geteuid(), name);
}

StateKeeper::StateKeeper(fs::path folder,
                         RunIdentity run,
                         std::function<void(const std::string&)> warn)
    : folder_(std::move(folder)), run_(std::move(run)), warn_(std::move(warn)) {
  own_folder(folder_);
  lock_ = UniqueFd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_.valid()) ::flock(lock_.get(), LOCK_SH | LOCK_NB);
  remove_leftovers(Folder(folder_));
}

void StateKeeper::reserve(const SnapshotSource& source) {
  reserve_memory(source, snapshot_);
  const uint64_t wanted = 2 * snapshot_.memory.nbytes();
  std::error_code error;
  const uint64_t free = fs::space(folder_, error).available;
  if (error || free + bytes_in(folder_) >= wanted) return;  // the next state replaces what it holds
  throw EnvironmentError(
      fmt::format("{} has no room for the training's state", folder_.parent_path().string()),
      fmt::format("--keep-in-memory wants twice its {} there, and {} are free",
                  size_text(static_cast<int64_t>(snapshot_.memory.nbytes())),
                  size_text(static_cast<int64_t>(free))),
      "mount -o remount,size=50% /dev/shm, docker run --shm-size, or leave --keep-in-memory out");
}

void StateKeeper::keep(const SnapshotSource& source, const TrainingPosition& position) {
  if (gave_up_) return;
  try {
    take_snapshot(source, snapshot_);
    snapshot_.record = {.run = run_, .position = position, .model_digest = {}};
    wait_for(snapshot_);
    const Folder folder(folder_);
    write_snapshot(folder, snapshot_);
    remove_superseded(folder, position.steps, 1);
  } catch (const EnvironmentError& error) {
    gave_up_ = true;
    warn_(
        fmt::format("lockstep: warning: the state is no longer kept in memory: {}\n  why: {}\n  "
                    "try: {}; training goes on",
                    error.what(),
                    error.why(),
                    advice_of(error)));
  }
}

void StateKeeper::remove() const {
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_, error)) {
    if (file.is_regular_file(error)) fs::remove(file, error);
  }
  fs::remove(folder_, error);  // the launcher may have files in it
}

std::optional<SoundCheckpoint> newest_kept(Communicator& ranks, const fs::path& folder) {
  std::optional<SoundCheckpoint> mine;
  if (!folder.empty()) {
    own_folder(folder);
    std::vector<std::string> notes;  // of damaged ones: others may have better
    mine = newest_sound(folder, notes);
  }
  const int64_t step = mine ? mine->checkpoint.record.position.steps : -1;
  const std::vector<int64_t> steps = comm::gather_value(ranks, step);
  const auto best = std::ranges::max_element(steps);
  const auto owner = static_cast<int>(best - steps.begin());
  if (*best < 0) return std::nullopt;
  if (owner == 0) return ranks.rank() == 0 ? std::move(mine) : std::nullopt;
  const fs::path name = model_file_name(*best);
  for (const fs::path& file : {state_file_of(name), name}) {
    bring(ranks, owner, folder / file, folder / file);
  }
  if (ranks.rank() != 0) return std::nullopt;
  return SoundCheckpoint{.model_file = folder / name, .checkpoint = read_checkpoint(folder / name)};
}

}  // namespace lockstep::trainers
