// Files that a run writes while it goes on.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/function_ref.h"
#include "trainers/output/console.h"
#include "trainers/output/progress.h"
#include "trainers/output/run_directory.h"

namespace lockstep::trainers {

// A disk that is full costs lines, not the training: there is one warning then. Silent without a
// directory, as on ranks other than 0.
class RunLog {
 public:
  // Both must outlive this.
  RunLog(const RunDirectory* directory, Console& console)
      : directory_(directory), console_(&console) {}

  void append(std::initializer_list<Metric> metrics);  // to metrics.jsonl
  // Appends a line of training, after `step` steps; `t` seconds after the process began.
  void append_step(int epoch, int64_t step, double t, const StepMetrics& metrics);
  void write_numerics(const std::string& text);

 private:
  void attempt(FunctionRef<void()> write);

  const RunDirectory* directory_;
  Console* console_;
  bool lost_ = false;
};

}  // namespace lockstep::trainers
