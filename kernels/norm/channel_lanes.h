// Loops over channels-last arrays in which every channel has constants or sums of its own. Arrays
// are of any float type; constants and sums are floats.
// Included by *_cpu.cpp files alone: see cpu_loops.h.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/stream.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {

// Part of the order of summation: the same at every x86-64 level.
inline constexpr int64_t kTileLanes = 32;

using Tile = FloatTile<kTileLanes>;

// Pixels are read in rows of whole pixels, at least a tile wide; a value's place in its row is its
// lane. So few channels fill the vectors too, and a lane meets one channel only.
struct Lanes {
  explicit Lanes(int64_t channel_count)
      : channels(channel_count),
        pixels((kTileLanes + channel_count - 1) / channel_count),
        width(channel_count * pixels),
        tiles(width / kTileLanes),
        overlap(width % kTileLanes != 0) {}

  int64_t channels;
  int64_t pixels;  // in a row; 1 from 32 channels on
  int64_t width;   // lanes
  int64_t tiles;   // side by side
  bool overlap;    // one more, over the last lanes of the row, meets some a second time

  // Lanes of all tiles: of these, the overlapping tile's come last.
  int64_t tile_lanes() const { return (tiles + (overlap ? 1 : 0)) * kTileLanes; }
  // Rows that a tile takes before the next one does. Row after row, memory is read in order: the
  // processor's prefetcher follows one order in a page, so only rows of a page or more may be read
  // side by side, which spares loads of a lane's constants.
  int64_t rows_together(int64_t rows) const {
    constexpr int64_t kFloatsOfPage = 1024;
    if (overlap) return 1;
    return tiles == 1 ? rows : width >= kFloatsOfPage ? 4 : 1;
  }
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
template <class T>
struct PartialRow {
  T lanes[2 * kTileLanes] = {};

  PartialRow() = default;
  PartialRow(const T* from, int64_t count) { std::copy_n(from, count, lanes); }
};

// Calls block(first value, rows) for runs of some rows, then tail(first value, values) for the
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

// In the place of a pointer: nothing is stored.
struct NoOutput {
  NoOutput operator+(int64_t) const { return {}; }
};

// Calls body(first lane, place among tile_lanes(), begin, end, put) for each tile of some rows that
// lie at [begin, end); body calls put(at, tile) where a tile of `out` (T* or NoOutput) is done.
// out may be an input: the overlapping tile is taken first and stored last.
template <class Out, class Body>
[[gnu::always_inline]] inline void for_tiles(const Lanes& lanes,
                                             int64_t rows,
                                             Out out,
                                             Body&& body) {
  const int64_t together = lanes.rows_together(rows);
  const int64_t last_lane = lanes.width - kTileLanes;
  std::remove_pointer_t<Out> held[kTileLanes] = {};
  for (int64_t row = 0; row < rows; row += together) {
    const int64_t begin = row * lanes.width;
    const int64_t end = std::min(row + together, rows) * lanes.width;
    for (int64_t tile = lanes.overlap ? -1 : 0; tile < lanes.tiles; ++tile) {
      const int64_t first = tile < 0 ? last_lane : tile * kTileLanes;
      const int64_t place = tile < 0 ? lanes.tiles * kTileLanes : first;
      body(first, place, begin, end, [&](int64_t at, const Tile& values) {
        if constexpr (std::is_pointer_v<Out>) store_tile(values, tile < 0 ? held : out + at);
      });
    }
    if constexpr (std::is_pointer_v<Out>) {
      if (lanes.overlap) store_tile(load_tile<kTileLanes>(held), out + begin + last_lane);
    }
  }
}

// out[i] = op(in[i]...) for every value of the pixels; make_op(first lane) gives the op of a tile.
// out may be an input.
template <class T, class MakeOp, class... In>
[[gnu::always_inline]] inline void map_lanes(
    const Lanes& lanes, int64_t pixels, T* out, MakeOp&& make_op, const In*... in) {
  const auto map_rows = [&](int64_t rows, T* to, const auto*... from) {
    for_tiles(lanes, rows, to, [&](int64_t first, int64_t, int64_t begin, int64_t end, auto&& put) {
      const auto op = make_op(first);
      for (int64_t at = begin + first; at < end; at += lanes.width) {
        put(at, op(load_tile<kTileLanes>(from + at)...));
      }
    });
  };
  for_blocks(
      lanes,
      pixels,
      [&](int64_t start, int64_t rows) { map_rows(rows, out + start, (in + start)...); },
      [&](int64_t start, int64_t count) {
        PartialRow<T> row;
        map_rows(1, row.lanes, PartialRow(in + start, count).lanes...);
        std::copy_n(row.lanes, count, out + start);
      });
}

// Two sums a lane, over rows: a block's own, a tile's side by side, and those of all blocks.
struct LaneSums {
  // Floats of scratch memory.
  static int64_t scratch(const Lanes& lanes) { return 2 * (lanes.tile_lanes() + lanes.width); }

  LaneSums(const Lanes& of, float* memory)
      : lanes(of),
        block{memory, memory + of.tile_lanes()},
        total{memory + 2 * of.tile_lanes(), memory + 2 * of.tile_lanes() + of.width} {}

  void clear() {
    for (float* sums : block) std::fill_n(sums, lanes.tile_lanes(), 0.0F);
    for (float* sums : total) std::fill_n(sums, lanes.width, 0.0F);
  }

  // Adds the block's sums of the first `count` lanes to the totals and starts a new block.
  void finish_block(int64_t count) {
    const int64_t side_by_side = lanes.tiles * kTileLanes;
    const int64_t overlap_shift = lanes.tile_lanes() - lanes.width;
    for (int i = 0; i < 2; ++i) {
      for (int64_t lane = 0; lane < count; ++lane) {
        total[i][lane] += block[i][lane < side_by_side ? lane : lane + overlap_shift];
      }
      std::fill_n(block[i], lanes.tile_lanes(), 0.0F);
    }
  }

  const Lanes& lanes;
  float* block[2];
  float* total[2];
};

// Leaves in sums.total[i][0, channels) each channel's two sums over the pixels. make_add(first
// lane) gives a tile's add(sum 0, sum 1, in...), which returns the tile of `out` where that is a
// pointer. The order is fixed: rows within a block, blocks, pixels of a row. out may be an input.
template <class Out, class MakeAdd, class... In>
[[gnu::always_inline]] inline void sum_lanes(
    const Lanes& lanes, int64_t pixels, LaneSums& sums, Out out, MakeAdd&& make_add, In*... in) {
  constexpr bool kStores = std::is_pointer_v<Out>;
  const auto sum_rows = [&](int64_t rows, auto to, const auto*... from) {
    for_tiles(
        lanes,
        rows,
        to,
        [&](int64_t first, int64_t place, int64_t begin, int64_t end, [[maybe_unused]] auto&& put) {
          const auto add = make_add(first);
          Tile sum0 = Tile::load(sums.block[0] + place);
          Tile sum1 = Tile::load(sums.block[1] + place);
          for (int64_t at = begin + first; at < end; at += lanes.width) {
            if constexpr (kStores) {
              put(at, add(sum0, sum1, load_tile<kTileLanes>(from + at)...));
            } else {
              add(sum0, sum1, load_tile<kTileLanes>(from + at)...);
            }
          }
          sum0.store(sums.block[0] + place);
          sum1.store(sums.block[1] + place);
        });
  };
  sums.clear();
  for_blocks(
      lanes,
      pixels,
      [&](int64_t start, int64_t rows) {
        sum_rows(rows, out + start, (in + start)...);
        sums.finish_block(lanes.width);
      },
      [&](int64_t start, int64_t count) {
        PartialRow<std::conditional_t<kStores, std::remove_pointer_t<Out>, float>> row;
        sum_rows(1, row.lanes, PartialRow(in + start, count).lanes...);
        sums.finish_block(count);
        if constexpr (kStores) std::copy_n(row.lanes, count, out + start);
      });
  for (float* total : sums.total) lanes.gather(total);
}

}  // namespace lockstep::kernels::LS_CPU
