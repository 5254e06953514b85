#include "trainers/runs/run_follower.h"

#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include "core/unique_fd.h"

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
      ::open((run_.directory / "metrics.jsonl").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about{};
  if (!file.valid() || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return;
  if (about.st_ino != file_ || static_cast<uint64_t>(about.st_size) < offset_) {
    run_.curves = {};
    file_ = about.st_ino;
    offset_ = 0;
    rest_.clear();
  }
  std::vector<std::byte> bytes(size_t{1} << 16);
  while (const auto count = read_at(file, offset_, bytes)) {
    if (*count == 0) break;
    offset_ += *count;
    rest_.append(reinterpret_cast<const char*>(bytes.data()), *count);
    size_t begin = 0;
    for (size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      run_.curves.add_line(std::string_view(rest_).substr(begin, end - begin));
    }
    rest_.erase(0, begin);
  }
}

}  // namespace lockstep::trainers
