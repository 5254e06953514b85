#include "trainers/train_main.h"

int main(int argc, char** argv) {
  return lockstep::trainers::train_main(lockstep::trainers::Program::kTrainConvnet, argc, argv);
}
