#include <iostream>

#include "trainers/cli/programs.h"

int main(int argc, char** argv) {
  return lockstep::trainers::run_lockstep_tool(argc, argv, std::cout, std::cerr);
}
