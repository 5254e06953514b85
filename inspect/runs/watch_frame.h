// Draws a run as a picture for the terminal, again as its files grow.
#pragma once

#include <string>
#include <vector>

#include "trainers/page/viewed_run.h"
#include "trainers/report/print.h"

namespace lockstep::trainers {

struct WatchView {
  TerminalSize size = {};
  bool colors = false;   // by escape sequences
  bool follows = false;  // the picture will change, until Ctrl-C
};

// At most `rows` lines of at most `columns` characters: state, progress, curves, speed, exposed
// communication, ranks, and what is worth a warning. Text of files is made safe to print.
std::vector<std::string> watch_frame(const ViewedRun& run, const WatchView& view);

}  // namespace lockstep::trainers
