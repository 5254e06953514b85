// Warns about combinations of flags that are seldom intended.
#pragma once

#include <string>
#include <vector>

#include "engine/settings/batch_division.h"
#include "trainers/config/rank_machine.h"
#include "trainers/config/run_request.h"

namespace lockstep::trainers {

// Errors: UsageError where images would be mixed, but no shard has two.
void check_mixing(const RunRequest& request, const BatchDivision& batch, int64_t dataset_images);

// Returns one warning a line; the run goes on.
std::vector<std::string> run_advice(const RunRequest& request,
                                    const BatchDivision& batch,
                                    int64_t dataset_images,
                                    const HostShare& host);

}  // namespace lockstep::trainers
