#include "trainers/cli/programs.h"

int main(int argc, char** argv) {
  return lockstep::trainers::run_train_program(
      lockstep::trainers::Program::kTrainConvnet, argc, argv);
}
