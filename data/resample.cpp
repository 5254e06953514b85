#include "data/resample.h"

#include <algorithm>
#include <vector>

#include "core/round_up.h"
#include "data/resample_rows.h"

namespace lockstep::data {
namespace {

Extent extent_of(const Resample& what) {
  return what.within.value_or(Extent{.height = static_cast<double>(what.box.height),
                                     .width = static_cast<double>(what.box.width)});
}

ResampleWeights rows_of(const Resample& what) {
  const Extent extent = extent_of(what);
  return {{.in = what.box.height, .skip = extent.top, .extent = extent.height},
          what.size.height,
          what.window.top,
          what.window.height,
          what.by};
}
ResampleWeights columns_of(const Resample& what) {
  const Extent extent = extent_of(what);
  return {{.in = what.box.width, .skip = extent.left, .extent = extent.width},
          what.size.width,
          what.window.left,
          what.window.width,
          what.by};
}

}  // namespace

Resample shrunk_by(int shrink, const Resample& what, const ImageSize& shrunk) {
  if (shrink == 1) return what;
  const auto down = [&](int64_t pixels) { return static_cast<double>(pixels) / shrink; };
  const auto end = [&](int64_t pixels, int64_t side) {
    return std::min(ceil_div<int64_t>(pixels, shrink), side);
  };
  Resample result = what;
  Region& box = result.box;
  box.top = what.box.top / shrink;
  box.left = what.box.left / shrink;
  box.height = end(what.box.top + what.box.height, shrunk.height) - box.top;
  box.width = end(what.box.left + what.box.width, shrunk.width) - box.left;
  result.within = Extent{.top = down(what.box.top) - static_cast<double>(box.top),
                         .left = down(what.box.left) - static_cast<double>(box.left),
                         .height = down(what.box.height),
                         .width = down(what.box.width)};
  return result;
}

Region needed(const Resample& what) {
  const ResampleWeights::Part rows = rows_of(what).all();
  const ResampleWeights::Part columns = columns_of(what).all();
  return {.top = what.box.top + rows.begin,
          .left = what.box.left + columns.begin,
          .height = rows.count,
          .width = columns.count};
}

void resample(const Image& image, const Resample& what, bool flip, std::span<uint8_t> to) {
  const ResampleWeights rows = rows_of(what);
  const ResampleWeights columns = columns_of(what);
  const RowResizer resizer(columns);
  const uint8_t* const end = image.pixels.data() + image.pixels.size();
  const int64_t bytes = what.window.width * 3;
  thread_local std::vector<uint8_t> narrow;  // the needed rows, their columns resized
  narrow.resize(static_cast<size_t>(rows.all().count * bytes));
  for (int64_t y = 0; y < rows.all().count; ++y) {
    const uint8_t* const row = image.row(what.box.top + rows.all().begin + y);
    const uint8_t* const box_start = row - (image.region.left - what.box.left) * 3;
    resizer.resize(box_start, end, flip, narrow.data() + y * bytes);
  }
  for (int64_t i = 0; i < what.window.height; ++i) {
    const ResampleWeights::Part& part = rows.part(i);
    const uint8_t* const first = narrow.data() + (part.begin - rows.all().begin) * bytes;
    mix_rows(first, bytes, part.count, rows.of(i), to.data() + i * bytes);
  }
}

}  // namespace lockstep::data
