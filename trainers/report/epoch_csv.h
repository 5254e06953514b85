// --csv: a row for each epoch, for spreadsheets.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/atomic_file.h"
#include "engine/results/training_result.h"

namespace lockstep::trainers {

struct EpochRow {
  std::chrono::system_clock::time_point start;            // of this process's part of the epoch
  double seconds = 0;                                     // of that part, its evaluation included
  int epoch = 0;                                          // from 0
  int64_t step = 0;                                       // steps since epoch 0
  double lr = 0;                                          // of the last step
  double train_loss = 0, train_acc1 = 0, train_acc5 = 0;  // the epoch's means; percent
  std::optional<Evaluation> evaluation = {};              // nothing where there was none
};

std::string csv_header();  // one line
std::string csv_line(const EpochRow& row);

// Rank 0 has one.
class EpochCsv {
 public:
  // A new run starts the file with the header. A run that goes on in epoch `resumed` keeps the rows
  // of the epochs before it. `overwrite`: an earlier run's file is replaced.
  // Errors: UsageError for a file that is not this run's; EnvironmentError for one that cannot be
  // written.
  EpochCsv(const std::filesystem::path& path, std::optional<int64_t> resumed, bool overwrite);

  // Errors: EnvironmentError.
  void append(const EpochRow& row) const;

 private:
  AppendedFile file_;
};

}  // namespace lockstep::trainers
