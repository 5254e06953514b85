// The settings that a training run is asked for, typed and checked, and the run that its ranks
// settled on.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data/codecs/image.h"
#include "data/photo_options.h"
#include "engine/library_versions.h"
#include "engine/observe/traced_steps.h"
#include "engine/settings/batch_division.h"
#include "engine/settings/choice_names.h"
#include "engine/settings/early_stopping_config.h"
#include "engine/settings/training_settings.h"
#include "kernels/image/normalize_image.h"
#include "trainers/config/augmentation_config.h"

namespace lockstep::trainers {

inline constexpr BatchNames kBatchFlags = {.images = "--global-batch-size",
                                           .per_rank = "-b",
                                           .micro_steps = "--batches-per-allreduce",
                                           .shards = "--shards",
                                           .bn_groups = "--bn-groups",
                                           .repeats = "--aug-repeats",
                                           .drop_last = "--drop-last"};

// How photos are resized, as flags spell it. None: one of the two, drawn for each image and epoch.
using ChosenInterpolation = std::optional<data::Interpolation>;

inline constexpr std::array kInterpolationNames = {
    Named<ChosenInterpolation>(data::Interpolation::kBilinear, "bilinear"),
    Named<ChosenInterpolation>(data::Interpolation::kBicubic, "bicubic"),
    Named<ChosenInterpolation>(std::nullopt, "random")};

inline std::string_view name_of(ChosenInterpolation chosen) {
  return word_of(kInterpolationNames, chosen);
}

// Made once from the options. A file of weights that fixes more of a run leads to another request.
struct RunRequest : TrainingSettings {
  std::string data;     // directory; empty: built-in set
  std::string dataset;  // "auto" only with a directory
  data::PhotoOptions photos;
  std::optional<kernels::NormalizeImageParams> normalize;  // absent: as the data set wants

  std::string arch;
  std::string preset;              // empty: none
  std::optional<int64_t> classes;  // of the network; absent: the data set's
  bool cifar_stem = false;
  bool zero_init_residual = false;
  bool blur_pool = false;
  double drop_path = 0;

  int64_t eval_freq = 1;  // epochs between evaluations
  bool no_eval = false;   // none at all
  bool lr_dry_run = false;
  AugmentationConfig augmentation;
  EarlyStoppingConfig early_stopping;

  BatchRequest batch{.names = kBatchFlags};
  std::optional<int64_t> threads;  // per rank; absent: as many as its share of cores

  bool explain_precision = false;
  bool graph = true;      // on CUDA, where the run allows it: ResolvedRun::runs_as_graph()
  bool autotune = false;  // cuDNN's engines are chosen by time
  std::string plan_file;  // of engines; empty: the run directory's, or none
  int64_t stall_abort_s = 0;
  int64_t stall_warn_s = 0;  // 0: never
  bool flight = true;        // what ranks do is recorded
  int64_t rendezvous_timeout_s = 0;

  std::string output_dir;  // empty: default_output_dir()
  bool overwrite = false;
  std::optional<TracedSteps> trace;   // absent: no timeline
  std::string csv;                    // file with a row per epoch; empty: none
  std::string pretrained;             // weight file; empty: none
  bool evaluate = false;              // saved weights, instead of training
  std::string save_logits;            // file for the logits of that; empty: none
  std::string class_names;            // file with names for the outputs of that; empty: none
  std::string resume;                 // "auto", a path, or empty
  int64_t save_freq = 1;              // epochs between checkpoints
  std::optional<int64_t> save_steps;  // steps between further ones
  int64_t keep = 3;                   // number of newest checkpoints to keep
  int64_t kept_steps = 0;             // between two states that are kept in memory; 0: none
  int64_t print_freq = 0;
  std::string progress;
  bool quiet = false;
  bool json = false;                    // a summary on standard output, and nothing else there
  std::optional<int64_t> time_limit_s;  // from the process's start
  bool anonymous = false;               // the run directory names no hosts
  bool tensorboard = true;              // event files in the run directory
  int64_t histograms = 0;               // steps between those of weights there; 0: none
  bool apex_lines = false;              // those of Apex's example instead of main.py's
  bool tricks_lines = false;            // those of tutorial 000's script
  bool report = true;                   // report.html there, at the end
  bool main_py_lines = false;  // train_resnet: main.py's lines of models and of validation too
};

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
