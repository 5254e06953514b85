// Batches of images, cut into tiles for Winograd's algorithm.
// Included by winograd_*_cpu.cpp alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/round_up.h"
#include "core/tensor.h"
#include "kernels/support/declare_op.h"

namespace lockstep::kernels::LS_CPU {

// Channels per panel, the unit of work of the products.
inline constexpr int64_t kPanel = 64;

inline int64_t panels_of(int64_t channels) {
  return ceil_div(channels, kPanel);
}
inline int64_t panel_width(int64_t channels, int64_t panel) {
  return std::min(kPanel, channels - panel * kPanel);
}

// The sums of a panel of channels for tiles [first_tile, first_tile + tiles). sums is
// [point][tile][kPanel].
struct OutputPanel {
  const float* sums;
  const float* bias;  // of the panel; may be null
  int64_t first_tile, tiles, first_channel, width;
};

// Divides a workspace into consecutive parts that begin at cache lines.
class WorkspaceParts {
 public:
  explicit WorkspaceParts(std::byte* at) : at_(at) {}

  template <class T>
  T* next(int64_t count) {
    std::byte* const part = at_;
    at_ += bytes_of<T>(count);
    return reinterpret_cast<T*>(part);
  }
  template <class T>
  static size_t bytes_of(int64_t count) {
    return (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
  }

 private:
  std::byte* at_;
};

// A batch of images, cut into tiles of kTile x kTile pixels, which are numbered by image, then in
// row-major order.
template <class T, int kTile>
struct TiledBatch {
  const T* at;
  int64_t images, height, width, channels;

  int64_t tile_rows() const { return ceil_div<int64_t>(height, kTile); }
  int64_t tile_columns() const { return ceil_div<int64_t>(width, kTile); }
  int64_t tiles() const { return images * tile_rows() * tile_columns(); }
  int64_t place(int64_t image, int64_t y, int64_t x) const {
    return ((image * height + y) * width + x) * channels;
  }
};
template <class T, int kTile>
TiledBatch<T, kTile> cut_into_tiles(const Tensor& batch, int64_t first, int64_t count) {
  const Shape& shape = batch.shape();
  return {batch.data<T>() + first * shape.stride0(), count, shape[2], shape[3], shape[1]};
}

// The position of a tile's first pixel.
struct TilePlace {
  int64_t image, y, x;

  template <class T, int kTile>
  TilePlace(const TiledBatch<T, kTile>& batch, int64_t tile)
      : image(tile / batch.tile_columns() / batch.tile_rows()),
        y(tile / batch.tile_columns() % batch.tile_rows() * kTile),
        x(tile % batch.tile_columns() * kTile) {}
};

// Pointers to the kCount x kCount pixels around a tile; `zeros` for pixels outside of the image.
template <class T, int kTile, int kCount>
struct TilePixels {
  static constexpr int kBefore = (kCount - kTile) / 2;  // the tile's first row and column

  const T* at[kCount * kCount] = {};

  static TilePixels all(const T* zeros) {
    TilePixels pixels;
    for (const T*& pixel : pixels.at) pixel = zeros;
    return pixels;
  }
  TilePixels() = default;
  TilePixels(const TiledBatch<T, kTile>& batch, int64_t tile, const T* zeros) {
    const TilePlace place(batch, tile);
    const int64_t top = place.y - kBefore, left = place.x - kBefore;
    const int64_t corner = batch.place(place.image, top, left);
    const int64_t row = batch.width * batch.channels;
    const auto pixel = [&](int y, int x) {
      return batch.at + (corner + y * row + x * batch.channels);
    };
    if (top >= 0 && left >= 0 && top + kCount <= batch.height && left + kCount <= batch.width) {
      fill([&](int y, int x) { return pixel(y, x); });
    } else {
      fill([&](int y, int x) {
        const bool inside =
            top + y >= 0 && top + y < batch.height && left + x >= 0 && left + x < batch.width;
        return inside ? pixel(y, x) : zeros;
      });
    }
  }

 private:
  template <class Pixel>
  [[gnu::always_inline]] void fill(const Pixel& pixel) {
#pragma GCC unroll 6
    for (int y = 0; y < kCount; ++y) {
#pragma GCC unroll 6
      for (int x = 0; x < kCount; ++x) at[y * kCount + x] = pixel(y, x);
    }
  }
};

}  // namespace lockstep::kernels::LS_CPU
