#include "engine/observe/flight_files.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/gather.h"
#include "core/atomic_file.h"
#include "core/errno_text.h"
#include "core/first_few.h"
#include "core/input_file.h"
#include "core/words.h"
#include "engine/observe/rank_process.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMemoryFolder = "/dev/shm";
constexpr const char* kIdFile = "run";  // tells a host that it sees the run's own folder
constexpr uint64_t kMostIdBytes = 64;   // more than an id has
constexpr auto kKeptFor = std::chrono::hours(24);

// "lockstep-flight.1000."
std::string begin_of_names() {
  return fmt::format("lockstep-flight.{}.", getuid());
}

std::string random_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

// Removes the records of killed runs a day after they began.
void remove_old_records() {
  std::error_code error;
  for (fs::directory_iterator file(kMemoryFolder, error), end; !error && file != end;
       file.increment(error)) {
    if (!file->path().filename().string().starts_with(begin_of_names())) continue;
    const UniqueFd fd(open(file->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info{};
    if (!fd.valid() || fstat(fd.get(), &info) != 0 || info.st_uid != getuid()) continue;
    const auto age = std::chrono::seconds(time(nullptr) - info.st_ctime);
    if (age < kKeptFor || process_of(fd.get(), 0) != kProcessGone) continue;
    std::ignore = unlink(file->path().c_str());
  }
}

// Removes an earlier run's records, and the memory files that its links lead to.
void empty_folder(const Folder& folder) {
  for (const std::string& name : folder.names()) {
    std::error_code no_link;
    const fs::path target = fs::read_symlink(folder.path() / name, no_link);
    const bool is_ours = target.filename().string().starts_with(begin_of_names());
    if (is_ours && target.parent_path() == kMemoryFolder) {
      std::ignore = unlink(target.c_str());
    }
    folder.remove(name);
  }
}

// Returns why they stay; "" where they are gone.
std::string drop_records(const Folder& run) {
  try {
    if (fs::exists(run.path() / kFlightFolder)) empty_folder(run.inner(kFlightFolder));
  } catch (const EnvironmentError& error) {
    return fmt::format("flight records of an earlier run stay: {}", error.why());
  }
  return {};
}

constexpr char kBetween = '\0';  // no path contains it

}  // namespace

std::string flight_file_of(int rank) {
  return fmt::format("rank-{}", rank);
}

std::string FlightFiles::open(Communicator& ranks, const Folder* run) {
  if (recorder_ == nullptr) return run == nullptr ? "" : drop_records(*run);
  std::string place;
  if (run != nullptr) {
    try {
      const Folder folder = run->inner(kFlightFolder);
      empty_folder(folder);
      const std::string id = random_id();
      write_file_atomically(folder, kIdFile, id);
      place = fmt::format("{}{}{}{}{}",
                          run->path().string(),
                          kBetween,
                          fs::absolute(folder.path()).string(),
                          kBetween,
                          id);
    } catch (const EnvironmentError& error) {
      place = fmt::format("{0}{0}{1}", kBetween, error.why());
    }
  }
  place = comm::broadcast_text(ranks, place);
  const std::vector<std::string_view> words = split_words(place, kBetween);
  std::string problem(words.back());
  if (!words.front().empty()) {
    run_ = words.front();
    problem = attach(std::string(words.at(1)), std::string(words.at(2)));
  }
  const std::vector<std::string> problems = comm::gather_texts(ranks, problem);
  std::vector<std::string> lines;
  for (size_t rank = 0; rank < problems.size(); ++rank) {
    if (!problems[rank].empty()) lines.push_back(fmt::format("rank {}: {}", rank, problems[rank]));
  }
  return lines.empty() ? "" : fmt::format("no flight record of {}", first_few(lines, "; "));
}

std::string FlightFiles::attach(const std::string& path, const std::string& id) {
  if (contents_of(fs::path(path) / kIdFile, kMostIdBytes) != id) {
    return fmt::format("its host does not see {}", path);
  }
  remove_old_records();
  id_ = id;
  const int rank = recorder_->record().header.rank;
  const std::string file = memory_file(rank);
  UniqueFd memory(
      ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!memory.valid()) return fmt::format("{}: {}", file, errno_text());
  const int no_room = posix_fallocate(memory.get(), 0, sizeof(FlightRecord));
  if (no_room != 0 || flock(memory.get(), LOCK_EX | LOCK_NB) != 0 ||
      !recorder_->move_to(memory.get())) {
    const std::string why = errno_text(no_room != 0 ? no_room : errno);
    std::ignore = unlink(file.c_str());
    return fmt::format("{}: {}", file, why);
  }
  try {
    folder_.emplace(path);
    link_atomically(*folder_, flight_file_of(rank), file);
  } catch (const EnvironmentError&) {
    return {};  // a file system without links: the records are there once a rank has failed
  }
  memory_ = std::move(memory);
  return {};
}

std::string FlightFiles::memory_file(int rank) const {
  return fmt::format("{}/{}{}.{}", kMemoryFolder, begin_of_names(), id_, rank);
}

void FlightFiles::end(ExitCode code) {
  if (recorder_ == nullptr) return;
  recorder_->end(static_cast<int>(code), {});
  keep_own();
}

void FlightFiles::fail(const Error& error) {
  if (recorder_ == nullptr) return;
  recorder_->end(static_cast<int>(error.code()), error.what());
  keep_own();
  keep_others();
}

void FlightFiles::keep_own() const {
  if (!folder_) return;
  FlightRecord record = recorder_->record();
  record.header.process = 'R';
  keep(record);
  std::ignore = unlink(memory_file(record.header.rank).c_str());
}

void FlightFiles::keep_others() const {
  if (!folder_) return;
  for (int rank = 0; rank < recorder_->record().header.ranks; ++rank) {
    if (rank == recorder_->record().header.rank) continue;
    const std::string file = memory_file(rank);
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    FlightRecord record;
    const auto bytes = std::as_writable_bytes(std::span(&record, 1));
    if (!fd.valid() || read_at(fd, 0, bytes) != bytes.size()) continue;
    record.header.process = process_of(fd.get(), record.header.pid);
    keep(record);
    std::ignore = unlink(file.c_str());
  }
}

// The first record stays, because launchers let a stopped rank continue before they end it. It is
// not flushed: after a failure, ranks should not wait for a disk.
void FlightFiles::keep(const FlightRecord& record) const {
  if (!folder_) return;
  const std::string name = flight_file_of(record.header.rank);
  struct stat there{};
  const bool is_there = fstatat(folder_->fd(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
  if (is_there && S_ISREG(there.st_mode)) return;
  FlightRecord copy = record;
  copy.header.copied_ns =
      std::chrono::nanoseconds(FlightRecorder::Clock::now().time_since_epoch()).count();
  const std::string temporary = fmt::format(".tmp.{}.{}", name, getpid());
  const UniqueFd fd(openat(folder_->fd(),
                           temporary.c_str(),
                           O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                           S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
  if (!fd.valid()) return;
  const bool is_whole = write(fd.get(), &copy, sizeof(copy)) == ssize_t{sizeof(copy)};
  if (is_whole && renameat(folder_->fd(), temporary.c_str(), folder_->fd(), name.c_str()) == 0) {
    return;
  }
  folder_->remove(temporary);
}

}  // namespace lockstep
