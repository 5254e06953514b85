// Loops over channels-last arrays with per-channel constants or sums. Arrays are of any float type;
// constants and sums are floats.
// Included by *_cpu.cpp files alone: see cpu_loops.h.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/round_up.h"
#include "core/stream.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {

// Fixes the order of summation, so it is the same at every x86-64 level.
inline constexpr int64_t kTileLanes = 32;

using Tile = FloatTile<kTileLanes>;

// Pixels are processed in rows of whole pixels, at least a tile wide; a value's index in its row is
// its lane. So even few channels fill the vectors, and all values of a lane belong to the same
// channel.
struct Lanes {
  explicit Lanes(int64_t channel_count)
      : channels(channel_count),
        pixels(ceil_div(kTileLanes, channel_count)),
        width(channel_count * pixels),
        tiles(width / kTileLanes),
        overlap(width % kTileLanes != 0) {}

  int64_t channels;
  int64_t pixels;  // per row; 1 from 32 channels on
  int64_t width;   // lanes per row
  int64_t tiles;   // disjoint tiles per row
  bool overlap;    // one more tile covers the row's last lanes, some of them a second time

  // Lanes of all tiles, where those of the overlapping tile come last.
  int64_t tile_lanes() const { return (tiles + (overlap ? 1 : 0)) * kTileLanes; }
  // The number of rows that a tile takes before the next tile does. More than one saves loads of
  // the lanes' constants, but reads memory out of order: the prefetcher follows one stream in a
  // page, so this pays only for rows of at least a page.
  int64_t rows_together(int64_t rows) const {
    constexpr int64_t kFloatsOfPage = 1024;
    if (overlap) return 1;
    return tiles == 1 ? rows : width >= kFloatsOfPage ? 4 : 1;
  }
  // Copies lanes[0, channels), a value per channel, to the lanes of the row's other pixels.
  void spread(float* lanes) const {
    for (int64_t lane = channels; lane < width; ++lane) lanes[lane] = lanes[lane - channels];
  }
  // Adds the lanes of a row's other pixels, in order, to lanes[0, channels).
  void fold(float* lanes) const {
    for (int64_t pixel = 1; pixel < pixels; ++pixel) {
      for (int64_t c = 0; c < channels; ++c) lanes[c] += lanes[pixel * channels + c];
    }
  }
};

// Pixels that do not fill a row, padded with zeros.
template <class T>
struct PartialRow {
  T lanes[2 * kTileLanes] = {};

  PartialRow() = default;
  PartialRow(const T* from, int64_t count) { std::copy_n(from, count, lanes); }
};

// Calls block(first value, rows) for blocks of rows, then tail(first value, values) for the pixels
// that do not fill a row, if there are any.
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

// Takes the place of an output pointer when nothing is stored.
struct NoOutput {
  NoOutput operator+(int64_t) const { return {}; }
};

// Calls body(first lane, index among tile_lanes(), begin, end, put) for each tile of the rows at
// [begin, end). body calls put(at, tile) for each finished tile of `out` (T* or NoOutput). out may
// be an input: the overlapping tile is computed first and stored last.
template <class Out, class Body>
[[gnu::always_inline]] inline void for_tiles(const Lanes& lanes,
                                             int64_t rows,
                                             Out out,
                                             Body&& body) {
  const int64_t row_step = lanes.rows_together(rows);
  const int64_t last_lane = lanes.width - kTileLanes;
  std::remove_pointer_t<Out> overlap_tile[kTileLanes] = {};
  for (int64_t row = 0; row < rows; row += row_step) {
    const int64_t begin = row * lanes.width;
    const int64_t end = std::min(row + row_step, rows) * lanes.width;
    for (int64_t tile = lanes.overlap ? -1 : 0; tile < lanes.tiles; ++tile) {
      const int64_t first = tile < 0 ? last_lane : tile * kTileLanes;
      const int64_t place = tile < 0 ? lanes.tiles * kTileLanes : first;
      body(first, place, begin, end, [&](int64_t at, const Tile& values) {
        if constexpr (std::is_pointer_v<Out>)
          store_tile(values, tile < 0 ? overlap_tile : out + at);
      });
    }
    if constexpr (std::is_pointer_v<Out>) {
      if (lanes.overlap) store_tile(load_tile<kTileLanes>(overlap_tile), out + begin + last_lane);
    }
  }
}

// out[i] = op(in[i]...) for every value of the pixels; make_op(first lane) returns the op of a
// tile. out may be an input.
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

// Two sums per lane: those of the current block, stored by tile, and the totals of all blocks.
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
    const int64_t disjoint_lanes = lanes.tiles * kTileLanes;
    const int64_t overlap_shift = lanes.tile_lanes() - lanes.width;
    for (int i = 0; i < 2; ++i) {
      for (int64_t lane = 0; lane < count; ++lane) {
        total[i][lane] += block[i][lane < disjoint_lanes ? lane : lane + overlap_shift];
      }
      std::fill_n(block[i], lanes.tile_lanes(), 0.0F);
    }
  }

  const Lanes& lanes;
  float* block[2];
  float* total[2];
};

// Puts each channel's two sums over the pixels into sums.total[i][0, channels). make_add(first
// lane) returns a tile's add(sum 0, sum 1, in...), which returns the tile of `out` if that is a
// pointer. The order is fixed: rows of a block, then blocks, then pixels of a row. out may be an
// input.
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
  for (float* total : sums.total) lanes.fold(total);
}

}  // namespace lockstep::kernels::LS_CPU
