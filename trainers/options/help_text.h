// The pages behind --help, --help-all and --version.
#pragma once

#include <string>

#include "trainers/options/option_table.h"

namespace lockstep::trainers {

// The usual flags in at most 45 lines of at most 100 columns.
std::string help_text(Program program);
// Every flag with all its names, whose name it is, and what is not built yet.
std::string help_all_text(Program program);
// One line; `verbose` adds compiler, build and processor.
std::string version_text(Program program, bool verbose);

}  // namespace lockstep::trainers
