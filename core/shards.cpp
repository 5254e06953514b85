#include "core/shards.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/check.h"
#include "core/error.h"
#include "core/first_few.h"

namespace lockstep {

Shards Shards::cut(int64_t images, int64_t shards, int64_t groups) {
  LS_CHECK(groups >= 1 && shards >= groups && shards % groups == 0 && images % groups == 0,
           "[shards] cut: got {} images, {} shards, {} groups",
           images,
           shards,
           groups);
  Shards cut{.offsets = {0}, .total = shards, .groups = groups, .step_images = images};
  const int64_t per_group = shards / groups;
  const int64_t group_images = images / groups;
  for (int64_t k = 0; k < shards; ++k) {
    const int64_t group_start = k / per_group * group_images;
    cut.offsets.push_back(group_start + (k % per_group + 1) * group_images / per_group);
  }
  return cut;
}

void Shards::check() const {
  const bool fit = groups >= 1 && total >= 1 && total % groups == 0 && first >= 0 && local() >= 0 &&
                   first + local() <= total && offsets.front() == 0 &&
                   std::ranges::is_sorted(offsets);
  if (fit) return;
  throw UsageError("a batch's shards do not fit together",
                   fmt::format("{} groups of {} shards; this rank has {} of them from {} on, at "
                               "rows {}",
                               groups,
                               total,
                               local(),
                               first,
                               first_few(offsets)),
                   "Shards::cut() or Shards::single(); groups must divide total");
}

bool any_group_spans_ranks(int64_t shards, int64_t groups, int64_t ranks) {
  const int64_t per_group = shards / groups;
  for (int64_t rank = 1; rank < ranks; ++rank) {
    if (rank * shards / ranks % per_group != 0) return true;
  }
  return false;
}

}  // namespace lockstep
