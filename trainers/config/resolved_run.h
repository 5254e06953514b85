// A training run as it will run: the request, and what its ranks settled together.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "engine/library_versions.h"
#include "engine/settings/batch_division.h"
#include "trainers/config/run_request.h"

namespace lockstep::trainers {

// Made in one place, train_run(), and const from then on. The request is a member and not a base
// class, so that each access says whether a value was asked for or settled, as in
// `request.output_dir` and `output_dir`.
struct ResolvedRun {
  RunRequest request = {};
  BatchDivision batch = {};
  int64_t threads = 1;                  // T, per rank
  std::string transport = "none";       // of gradients: connect()'s, or "nccl" or "ipc"
  LibraryVersions cuda_libraries = {};  // those that compute
  std::string plan_choices = {};        // digest of the engines in use; empty: all are the rule's
  std::string output_dir = {};

  bool over_nccl() const { return transport == "nccl"; }
  bool over_ipc() const { return transport == "ipc"; }
  bool runs_as_graph() const;  // where it was asked for and fits_one_graph()
};

// "runs/20260131-120000-convnet-n8".
std::string default_output_dir(const std::string& arch,
                               int64_t ranks,
                               std::chrono::system_clock::time_point start);

}  // namespace lockstep::trainers
