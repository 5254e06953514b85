#include "trainers/timeline/write_trace.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "trainers/config/run_files.h"
#include "trainers/report/errors.h"
#include "trainers/timeline/trace_file.h"

namespace lockstep::trainers {
namespace {

void write_file(RunDirectory& directory, const std::vector<std::string>& parts, Console& console) {
  std::vector<std::span<const std::byte>> pieces;
  for (size_t i = 0; i < parts.size(); ++i) {
    constexpr std::string_view kBetween = ",\n";
    if (i > 1) pieces.push_back(std::as_bytes(std::span(kBetween)));
    pieces.push_back(std::as_bytes(std::span(parts[i])));
  }
  pieces.push_back(std::as_bytes(std::span(kTraceEnd)));
  try {
    write_file_atomically(directory.folder(), kTraceFile, pieces);
  } catch (const EnvironmentError& error) {
    console.warn(fmt::format("no trace: {}: {}", error.what(), error.why()));
    return;
  }
  console.info(fmt::format("trace {}", (directory.path() / kTraceFile).string()));
}

}  // namespace

void write_trace(const std::optional<RecordedSteps>& steps,
                 Communicator& ranks,
                 RunDirectory* directory,
                 Console& console) {
  if (!steps) return;
  if (steps->clocks_before.empty()) {
    console.warn(fmt::format("no trace: the run took none of the steps {} to {} of --trace",
                             steps->wanted.first,
                             steps->wanted.last));
    return;
  }
  const auto rank = static_cast<size_t>(ranks.rank());
  const std::string mine =
      trace_events({.rank = ranks.rank(),
                    .spans = steps->spans,
                    .clock = {steps->clocks_before[rank], steps->clocks_after[rank]},
                    .origin = steps->clocks_before.front().at});
  std::vector<std::string> parts = comm::collect_texts(ranks, mine);
  on_rank_0(ranks, "writing the trace", [&] {
    if (directory == nullptr) return;
    parts.insert(parts.begin(),
                 trace_header({.first_step = steps->wanted.first,
                               .last_step = steps->last,
                               .device = name_of(steps->device),
                               .clocks_before = steps->clocks_before,
                               .clocks_after = steps->clocks_after}));
    write_file(*directory, parts, console);
  });
  if (directory == nullptr || !steps->has_more) return;
  console.warn(fmt::format(
      "the trace ends after step {}: there is room for {} spans per rank; trace fewer steps",
      steps->last,
      StepTimeline::kMaxSpans));
}

}  // namespace lockstep::trainers
