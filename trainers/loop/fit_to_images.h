// Initial weights that depend on the images to train on.
#pragma once

#include "data/dataset.h"
#include "nn/module.h"
#include "trainers/config/run_request.h"

namespace lockstep::trainers {

// Fits the network's whitening layers, if it has any, to the first 5,000 training images that can
// be read, normalized as the run has it and not augmented. Errors: those of nn::Whitening::fit.
void fit_to_images(const RunRequest& request, const data::Dataset& train, nn::Module& network);

}  // namespace lockstep::trainers
