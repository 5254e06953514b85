// Compares the trainings that ranks are about to do together.
#pragma once

#include "core/communicator.h"
#include "data/dataset.h"
#include "engine/trainer.h"
#include "nn/module.h"

namespace lockstep {

// A collective call: all ranks must train one network on the same images with the same options, by
// one version of the library on one kind of processor and device. Threads, workers and warn() are a
// rank's own. Errors: those of comm::handshake().
void compare_trainings(Communicator& ranks,
                       const nn::Module& network,
                       const data::DatasetPair& images,
                       const TrainerOptions& options);

}  // namespace lockstep
