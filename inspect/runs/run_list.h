// Lists runs as lines of text: those of a folder, and several side by side.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "trainers/page/viewed_run.h"

namespace lockstep::trainers {

enum class RunOrder : uint8_t { kStart, kAccuracy, kLoss, kSpeed, kTime, kName };
inline constexpr std::string_view kRunOrders[] = {
    "start", "accuracy", "loss", "speed", "time", "name"};

// Returns a line for each run in `folder`; the newest, the best, the fastest, the shortest or the
// first by name comes first. The line of a run that cannot be read says why. Names are made safe to
// print. Errors: EnvironmentError when the folder cannot be read or holds no run.
std::string list_runs(const std::filesystem::path& folder, RunOrder order);

// Compares runs: the flags that differ, what the runs reached, in what time, with which bits.
std::string compare_runs(std::span<const ViewedRun> runs);

}  // namespace lockstep::trainers
