#include "inspect/runs/run_follower.h"

#include <system_error>
#include <utility>

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
  const UniqueFd file = open_metrics(run_.directory / kMetricsFile);
  struct stat about{};
  if (!file.valid() || ::fstat(file.get(), &about) != 0) return;
  if (about.st_ino != file_ || static_cast<uint64_t>(about.st_size) < offset_) {
    run_.curves = {};
    file_ = about.st_ino;
    offset_ = 0;
    lines_ = {};
  }
  offset_ = add_lines(file, offset_, lines_, run_.curves);
}

}  // namespace lockstep::trainers
