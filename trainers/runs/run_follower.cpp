#include "trainers/runs/run_follower.h"

#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "core/unique_fd.h"
#include "trainers/config/run_files.h"

namespace lockstep::trainers {

namespace fs = std::filesystem;

const ViewedRun& RunFollower::update() {
  ViewedRun now = view_record(path_);  // before the lines: they are all there once it has ended
  std::error_code unknown;
  const fs::path place = fs::canonical(now.directory, unknown);
  if (!unknown) path_ = place;  // runs/latest may be another run's by then
  now.curves = std::move(run_.curves);
  run_ = std::move(now);
  read_new_lines();
  return run_;
}

void RunFollower::read_new_lines() {
  const UniqueFd file(
      ::open((run_.directory / kMetricsFile).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about{};
  if (!file.valid() || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return;
  if (about.st_ino != file_ || static_cast<uint64_t>(about.st_size) < offset_) {
    run_.curves = {};
    file_ = about.st_ino;
    offset_ = 0;
    lines_ = {};
  }
  std::string bytes(size_t{1} << 16, '\0');
  while (const auto count = read_at(file, offset_, std::as_writable_bytes(std::span(bytes)))) {
    if (*count == 0) break;
    offset_ += *count;
    lines_.add(std::string_view(bytes.data(), *count),
               [&](const std::string& line) { run_.curves.add_line(line); });
  }
}

}  // namespace lockstep::trainers
