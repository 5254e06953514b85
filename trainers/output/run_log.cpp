#include "trainers/output/run_log.h"

#include <utility>

#include "core/atomic_file.h"
#include "core/error.h"

namespace lockstep::trainers {

void RunLog::append(std::initializer_list<Metric> metrics) {
  attempt([&] { directory_->append(metrics); });
}

void RunLog::write_numerics(const std::string& text) {
  attempt([&] { write_file_atomically(directory_->path() / kNumericsFile, text); });
}

void RunLog::attempt(FunctionRef<void()> write) {
  if (directory_ == nullptr) return;
  try {
    write();
  } catch (const EnvironmentError& error) {
    if (std::exchange(lost_, true)) return;
    console_->warn(
        fmt::format("lockstep: warning: {}\n  why: {}\n  try: {}; training goes on, lines are lost",
                    error.what(),
                    error.why(),
                    error.hint()));
  }
}

}  // namespace lockstep::trainers
