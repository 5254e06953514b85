// Settings of a training run, typed and checked.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>

#include "data/photo_options.h"
#include "kernels/normalize_image.h"
#include "trainers/config/exchange_config.h"
#include "trainers/config/optimizer_config.h"
#include "trainers/config/precision_config.h"
#include "trainers/options/command_line.h"

namespace lockstep::trainers {

struct RunConfig {
  std::string data;     // directory; empty: built-in set
  std::string dataset;  // "auto" only with a directory
  int64_t workers = 0;
  int64_t val_batch_size = 0;
  data::PhotoOptions photos;
  std::optional<kernels::NormalizeImageParams> normalize;  // absent: as the data set wants

  std::string arch;
  std::string preset;              // empty: none
  std::optional<int64_t> classes;  // of the network; absent: the data set's
  bool cifar_stem = false;
  bool zero_init_residual = false;

  int64_t epochs = 0;
  int64_t start_epoch = 0;           // the first one's number
  std::optional<int64_t> max_steps;  // of the whole run, a resumed part included
  int64_t eval_freq = 1;             // epochs between evaluations
  OptimizerConfig optimizer;
  bool lr_dry_run = false;
  double label_smoothing = 0;
  double mixup = 0;  // alpha; 0: none
  uint64_t seed = 0;

  int64_t micro_steps = 1;  // A

  PrecisionConfig precision;
  bool explain_precision = false;
  Device device = Device::kCpu;
  bool graph = true;      // on CUDA, where the run allows it: runs_as_graph()
  bool autotune = false;  // cuDNN's engines are chosen by time
  std::string plan_file;  // of engines; empty: the run directory's, or none
  ExchangeConfig exchange;
  int64_t stall_abort_s = 0;

  std::string output_dir;  // empty: default_output_dir()
  bool overwrite = false;
  std::string pretrained;             // weight file; empty: none
  bool evaluate = false;              // saved weights, instead of training
  std::string resume;                 // "auto", a path, or empty
  int64_t save_freq = 1;              // epochs between checkpoints
  std::optional<int64_t> save_steps;  // steps between further ones
  int64_t keep = 3;                   // newest checkpoints that stay
  int64_t print_freq = 0;
  std::string progress;
  bool quiet = false;
  bool apex_lines = false;     // those of Apex's example instead of main.py's
  bool main_py_lines = false;  // train_resnet: main.py's lines of models and of validation too

  // As asked for; resolve_run() (trainers/config/resolve_run.h) settles the rest. Absent: not
  // given.
  struct Asked {
    std::optional<int64_t> batch_size;         // images a rank and micro-step
    std::optional<int64_t> global_batch_size;  // images an optimizer step
    std::optional<int64_t> shards;
    std::optional<int64_t> bn_groups;  // 1 with --sync-bn
    std::optional<int64_t> threads;    // a rank
  } asked;
  int64_t default_batch_size = 0;  // of the preset or the program

  std::string transport = "none";  // what connect() found, or "nccl" or "ipc"
  bool over_nccl() const { return transport == "nccl"; }
  bool over_ipc() const { return transport == "ipc"; }

  // Set by trainers/plans/run_engines.h.
  std::map<std::string, std::string> cuda_libraries;  // version by name: those that compute
  std::string plan_choices;  // digest of the engines in use; empty: all are the rule's

  // Set by resolve_run().
  int64_t ranks = 1;
  int64_t threads = 1;       // T, a rank
  int64_t global_batch = 0;  // B, images an optimizer step
  int64_t shards = 1;        // S, a micro-step
  int64_t bn_groups = 1;     // G, a micro-step
};

// Errors: UsageError for flags that contradict each other.
RunConfig make_run_config(const Options& options);

// A step is given to the device as one recorded graph: where it needs no host, neither to exchange
// gradients nor to gather the statistics of batch norm, and has one micro-step. Requires: a
// resolved config.
bool runs_as_graph(const RunConfig& config);

struct HostShare {
  int64_t affinity_cores = 1;  // this process may use
  int64_t host_cores = 1;
  int64_t ranks_on_host = 1;
};
HostShare host_share(int64_t ranks_on_host);
// --threads, else OMP_NUM_THREADS (`omp_threads`, may be null), else this rank's share of cores.
// Errors: UsageError for an OMP_NUM_THREADS that is no number.
int64_t threads_per_rank(const RunConfig& config, const char* omp_threads, const HostShare& host);

// "runs/20260131-120000-convnet-n8".
std::string default_output_dir(const RunConfig& config, std::time_t utc);

}  // namespace lockstep::trainers
