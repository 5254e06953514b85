#include <iostream>

#include "core/standard_streams.h"
#include "inspect/cli/lockstep_tool.h"
#include "trainers/report/errors.h"

int main(int argc, char** argv) {
  lockstep::open_standard_streams();
  return lockstep::trainers::end_output(
      lockstep::trainers::run_lockstep_tool(argc, argv, std::cout, std::cerr));
}
