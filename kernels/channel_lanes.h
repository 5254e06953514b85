// Loops over channels-last arrays in which every channel has constants or sums of its own.
// Included by *_cpu.cpp files alone: see cpu_loops.h.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/stream.h"
#include "kernels/float_tile.h"

namespace lockstep::kernels::LS_CPU {

// Part of the order of summation: the same at every x86-64 level.
inline constexpr int64_t kTileLanes = 32;

using Tile = FloatTile<kTileLanes>;

// Pixels are read in rows of whole pixels, at least a tile wide; a float's place in its row is its
// lane. So few channels fill the vectors too, and a lane meets one channel only.
struct Lanes {
  explicit Lanes(int64_t channel_count)
      : channels(channel_count),
        pixels((kTileLanes + channel_count - 1) / channel_count),
        width(channel_count * pixels) {}

  int64_t channels;
  int64_t pixels;  // in a row; 1 from 32 channels on
  int64_t width;   // lanes

  // Repeats a value a channel, lanes[0, channels), for the other pixels of a row.
  void spread(float* lanes) const {
    for (int64_t lane = channels; lane < width; ++lane) lanes[lane] = lanes[lane - channels];
  }
  // Adds up the pixels of a row, in their order, into lanes[0, channels).
  void gather(float* lanes) const {
    for (int64_t pixel = 1; pixel < pixels; ++pixel) {
      for (int64_t c = 0; c < channels; ++c) lanes[c] += lanes[pixel * channels + c];
    }
  }
};

// Pixels that fill no row, with room up to a row.
struct PartialRow {
  float lanes[2 * kTileLanes] = {};

  PartialRow() = default;
  PartialRow(const float* from, int64_t count) {
    std::memcpy(lanes, from, static_cast<size_t>(count) * sizeof(float));
  }
};

// Calls block(first float, rows) for runs of some rows, then tail(first float, floats) for the
// pixels that fill no row, if there are any.
template <class Block, class Tail>
[[gnu::always_inline]] inline void for_blocks(const Lanes& lanes,
                                              int64_t pixels,
                                              Block&& block,
                                              Tail&& tail) {
  const int64_t rows = pixels / lanes.pixels;
  const int64_t step = std::max<int64_t>(16, 2048 / lanes.width);
  for (int64_t row = 0; row < rows; row += step) {
    block(row * lanes.width, std::min(step, rows - row));
  }
  const int64_t rest = pixels - rows * lanes.pixels;
  if (rest > 0) tail(rows * lanes.width, rest * lanes.channels);
}

// Calls body(first lane) such that the tiles cover the row; the last may overlap the one before it.
template <class Body>
[[gnu::always_inline]] inline void for_tiles(const Lanes& lanes, Body&& body) {
  int64_t first = 0;
  for (; first + kTileLanes <= lanes.width; first += kTileLanes) body(first);
  if (first < lanes.width) body(lanes.width - kTileLanes);
}

// out[i] = op(in[i]...) for every float of the pixels; make_op(first lane) gives the op of a tile,
// its constants in registers. Requires: out overlaps no input.
template <class MakeOp, class... In>
[[gnu::always_inline]] inline void map_lanes(
    const Lanes& lanes, int64_t pixels, float* out, MakeOp&& make_op, const In*... in) {
  const auto map_rows = [&](int64_t rows, float* to, const auto*... from) {
    for_tiles(lanes, [&](int64_t first) {
      const auto op = make_op(first);
      for (int64_t at = first; at < rows * lanes.width; at += lanes.width) {
        op(Tile::load(from + at)...).store(to + at);
      }
    });
  };
  for_blocks(
      lanes,
      pixels,
      [&](int64_t start, int64_t rows) { map_rows(rows, out + start, (in + start)...); },
      [&](int64_t start, int64_t count) {
        PartialRow row;
        map_rows(1, row.lanes, PartialRow(in + start, count).lanes...);
        std::memcpy(out + start, row.lanes, static_cast<size_t>(count) * sizeof(float));
      });
}

// Two sums a lane, over rows: a block's own and those of all blocks, `width` floats each.
struct LaneSums {
  static constexpr int64_t kArrays = 4;

  LaneSums(float* scratch, int64_t width)
      : block{scratch, scratch + width}, total{scratch + 2 * width, scratch + 3 * width} {}

  void add_block(int64_t lanes) {
    for (int i = 0; i < 2; ++i) {
      for (int64_t lane = 0; lane < lanes; ++lane) total[i][lane] += block[i][lane];
    }
  }

  float* block[2];
  float* total[2];
};

// In the place of a pointer: sums alone are wanted.
struct NoOutput {
  NoOutput operator+(int64_t) const { return {}; }
};

// Leaves each channel's two sums over the pixels in sums.total[i][0, channels). make_add(first
// lane) gives a tile's add(sum 0, sum 1, in...), which returns the tile for `out` (float*) where
// there is one. The order is fixed: rows within a block, blocks, pixels of a row. Some floats are
// met twice: out may be an input only where add gives the same from what it stored.
template <class Out, class MakeAdd, class... In>
[[gnu::always_inline]] inline void sum_lanes(
    const Lanes& lanes, int64_t pixels, LaneSums& sums, Out out, MakeAdd&& make_add, In*... in) {
  constexpr bool kStores = std::is_same_v<Out, float*>;
  const auto sum_rows = [&](int64_t rows, auto to, const auto*... from) {
    for_tiles(lanes, [&](int64_t first) {
      const auto add = make_add(first);
      Tile sum0{};
      Tile sum1{};
      for (int64_t at = first; at < rows * lanes.width; at += lanes.width) {
        if constexpr (kStores) {
          add(sum0, sum1, Tile::load(from + at)...).store(to + at);
        } else {
          add(sum0, sum1, Tile::load(from + at)...);
        }
      }
      sum0.store(sums.block[0] + first);
      sum1.store(sums.block[1] + first);
    });
  };
  for (float* total : sums.total) std::fill_n(total, lanes.width, 0.0F);
  for_blocks(
      lanes,
      pixels,
      [&](int64_t start, int64_t rows) {
        sum_rows(rows, out + start, (in + start)...);
        sums.add_block(lanes.width);
      },
      [&](int64_t start, int64_t count) {
        PartialRow row;
        sum_rows(1, row.lanes, PartialRow(in + start, count).lanes...);
        sums.add_block(count);
        if constexpr (kStores) {
          std::memcpy(out + start, row.lanes, static_cast<size_t>(count) * sizeof(float));
        }
      });
  for (float* total : sums.total) lanes.gather(total);
}

}  // namespace lockstep::kernels::LS_CPU
