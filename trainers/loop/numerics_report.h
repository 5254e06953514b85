// The report of infinities and NaNs in a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainers/loop/numerics_find.h"

namespace lockstep::trainers {

enum class Trouble : uint8_t {
  kLoss,
  kSkips
};  // a loss that is not finite; skipped steps in a row
std::string_view name_of(Trouble trouble);  // "loss", "skips"

// The loss scale once it has changed.
struct ScaleChange {
  int64_t step = 0;
  double scale = 1;
  bool skipped = false;
};

struct NumericsReport {
  Trouble trouble = Trouble::kLoss;
  std::string what{};                   // "the loss is nan"
  int64_t step = 0;                     // where that was seen, from 1
  std::vector<ScaleChange> scales{};    // the last ones, oldest first; none without loss scaling
  std::optional<NumericsFind> first{};  // where it was looked for and found
  int64_t shards = 1;
  int64_t ranks = 1;  // of the run, which owned the shards

  // Ranks of the run that owned the shards of `first`.
  std::vector<int64_t> owners() const;
};

// For people; long lists are cut.
std::vector<std::string> lines(const NumericsReport& report);
// numerics.json: indented, ends in a newline.
std::string to_json(const NumericsReport& report);

}  // namespace lockstep::trainers
