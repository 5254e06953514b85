// Follows the files of a run while it goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include "core/line_splitter.h"
#include "trainers/page/viewed_run.h"

namespace lockstep::trainers {

// Reads each line of metrics.jsonl once, so that following a long run costs no more than a short
// one. Starts over where the file was replaced or truncated, as by a resumed run.
class RunFollower {
 public:
  // `path`: as view_run()'s.
  explicit RunFollower(std::filesystem::path path) : path_(std::move(path)) {}

  // Reads what is new. A run that has ended is read to its end. Errors: those of view_run().
  const ViewedRun& update();

 private:
  void read_new_lines();

  std::filesystem::path path_;
  ViewedRun run_;
  uint64_t file_ = 0;    // metrics.jsonl's number in its file system
  uint64_t offset_ = 0;  // what was read of it
  LineSplitter lines_;
};

}  // namespace lockstep::trainers
