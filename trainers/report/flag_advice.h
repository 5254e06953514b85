// Warns about combinations of flags that are seldom intended.
#pragma once

#include <string>
#include <vector>

#include "engine/settings/batch_division.h"
#include "engine/settings/precision_config.h"
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

// Lists, in a line each, what may surprise in a run of this precision with so many images per rank
// and micro-step. `native_bf16`: the processor computes in bf16.
std::vector<std::string> notes_on(const PrecisionConfig& config, int64_t images, bool native_bf16);

}  // namespace lockstep::trainers
