// Rank 0's output to the user.
#pragma once

#include <string>

#include "trainers/report/progress.h"

namespace lockstep::trainers {

// Silent on other ranks. With a tutorial's preset, standard output holds that tutorial's lines and
// nothing else; the rest goes to standard error. Thread safety: none.
class Console {
 public:
  struct Options {
    bool prints = true;     // rank 0
    bool quiet = false;     // results and warnings only
    bool tutorial = false;  // a demo preset
    ProgressMode progress = ProgressMode::kLine;
  };

  explicit Console(const Options& options) : options_(options) {}

  const Options& options() const { return options_; }
  void info(const std::string& line);      // start lines; not when quiet
  void result(const std::string& line);    // always
  void tutorial(const std::string& line);  // with a demo preset only, on standard output
  void warn(const std::string& line);      // always, on standard error
  void progress_line(const std::string& line);
  void progress_bar(const std::string& line);  // replaces the last bar

 private:
  void end_bar();
  std::FILE* out() const { return options_.tutorial ? stderr : stdout; }

  Options options_;
  bool bar_open_ = false;
};

}  // namespace lockstep::trainers
