// Files that a run writes while it goes on.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/function_ref.h"
#include "trainers/report/console.h"
#include "trainers/report/progress.h"
#include "trainers/report/run_directory.h"

namespace lockstep::trainers {

// A disk that is full costs lines, not the training: there is one warning then. Silent without a
// directory, as on ranks other than 0.
class RunLog {
 public:
  // Both must outlive this.
  RunLog(const RunDirectory* directory, Console& console)
      : directory_(directory), console_(&console) {}

  void append(std::initializer_list<Metric> metrics);  // to metrics.jsonl
  // Appends a line of training, or of an evaluation, after `step` steps. `digest`: of the model, or
  // "".
  void append_step(int epoch, int64_t step, const StepMetrics& metrics);
  void append_evaluation(std::string_view split,
                         int epoch,
                         int64_t step,
                         const Evaluation& evaluation,
                         std::string_view digest);
  void write_numerics(const std::string& text);

 private:
  void attempt(FunctionRef<void()> write);

  const RunDirectory* directory_;
  Console* console_;
  bool lost_ = false;
};

}  // namespace lockstep::trainers
