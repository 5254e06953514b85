// The command line of bench_train: the flags of Horovod's synthetic benchmark and some of
// Lockstep's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/connect.h"
#include "core/communicator.h"
#include "core/device.h"
#include "core/error.h"
#include "trainers/config/run_request.h"
#include "trainers/model/models.h"

namespace lockstep::bench {

struct SyntheticOptions {
  std::string arch = "resnet50";
  int64_t batch_size = 32;            // per rank
  std::optional<int64_t> image_size;  // height and width; absent: the network's usual one
  std::optional<int64_t> classes;     // absent: the network's usual number
  bool cifar_stem = false;
  Device device = Device::kCpu;
  bool no_graph = false;     // on CUDA: no step is recorded
  bool with_input = false;   // images come from the loader instead of one batch that stays
  int64_t workers = 2;       // of the loader
  bool autotune = false;     // cuDNN's engines are chosen by time
  std::string plan_file;     // of those engines; empty: none
  bool against_cpu = false;  // one step, compared with the CPU's, in place of a measurement
  int64_t warmup_batches = 10;
  int64_t batches_per_iteration = 10;
  int64_t iterations = 10;
  OptLevel opt_level = OptLevel::kO0;
  Dtype dtype = Dtype::kBF16;      // the 16-bit type
  std::optional<int64_t> threads;  // per rank
  std::optional<int64_t> shards;
  std::optional<int64_t> bn_groups;
  bool sync_bn = false;
  Algorithm algorithm = Algorithm::kTree;
  comm::ConnectOptions connect;
  bool json = false;
  std::string help;  // not empty: to be printed instead of measuring
};

// `arguments`: without the program's name. Errors: UsageError.
SyntheticOptions read_synthetic_options(const std::vector<std::string>& arguments);

// For set_remedy_text().
std::string_view synthetic_advice(Remedy remedy);

// Returns the network's options. An image size or a number of classes that is not given is that of
// the data set that the network is for.
trainers::ModelOptions model_options(const SyntheticOptions& options);

// Returns the request that the trainers' flags would make for such a run.
trainers::RunRequest run_request(const SyntheticOptions& options);

}  // namespace lockstep::bench
