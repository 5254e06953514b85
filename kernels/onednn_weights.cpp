#include "kernels/onednn_weights.h"

#include <algorithm>

namespace lockstep::kernels::onednn {
namespace {

constexpr int64_t kPiece = 64;  // filters
// Values that are neighbours in one layout are far apart in the other: the order of the copy goes
// by tiles of both.
constexpr int64_t kTileFilters = 16;
constexpr int64_t kTileChannels = 64;
constexpr int64_t kRun = 8;  // channels whose offsets need no look-up

bool steps_are_even(const std::vector<int64_t>& offsets) {
  for (size_t i = 2; i < offsets.size(); ++i) {
    const bool inside = i % kRun >= 2;
    if (inside && offsets[i] - offsets[i - 1] != offsets[i - 1] - offsets[i - 2]) return false;
  }
  return true;
}

}  // namespace

WeightLayout::WeightLayout(const Shape& weight, const MemoryDesc& packed)
    : filters_(weight[0]), channels_(weight[1]), taps_(weight[2] * weight[3]) {
  const BlockedLayout layout = blocked_layout(packed);
  filter_offsets_ = layout.offsets(0);
  channel_offsets_ = layout.offsets(1);
  for (const int64_t row : layout.offsets(2)) {
    for (const int64_t column : layout.offsets(3)) tap_offsets_.push_back(row + column);
  }
  even_steps_ = steps_are_even(channel_offsets_);
}

int64_t WeightLayout::pieces() const {
  return (static_cast<int64_t>(filter_offsets_.size()) + kPiece - 1) / kPiece;
}

template <class Move>
void WeightLayout::for_values(const float* weight, int64_t first, int64_t last, Move&& move) const {
  const int64_t* channel_offsets = channel_offsets_.data();
  const auto move_channels = [&](int64_t plain, int64_t packed, int64_t begin, int64_t end) {
    for (int64_t i = 0; i < kTileChannels; i += 16) __builtin_prefetch(weight + plain + end + i);
    int64_t c = begin;
    for (; even_steps_ && c + kRun <= end; c += kRun) {
      const int64_t start = packed + channel_offsets[c];
      const int64_t step = channel_offsets[c + 1] - channel_offsets[c];
      for (int64_t i = 0; i < kRun; ++i) move(plain + c + i, start + i * step);
    }
    for (; c < end; ++c) move(plain + c, packed + channel_offsets[c]);
  };
  for (int64_t tile = first; tile < last; tile += kTileFilters) {
    const int64_t tile_end = std::min(tile + kTileFilters, last);
    for (int64_t tap = 0; tap < taps_; ++tap) {
      const int64_t tap_offset = tap_offsets_[static_cast<size_t>(tap)];
      for (int64_t c = 0; c < channels_; c += kTileChannels) {
        for (int64_t filter = tile; filter < tile_end; ++filter) {
          move_channels((filter * taps_ + tap) * channels_,
                        filter_offsets_[static_cast<size_t>(filter)] + tap_offset,
                        c,
                        std::min(c + kTileChannels, channels_));
        }
      }
    }
  }
}

void WeightLayout::pack(int64_t piece, const float* weight, float* packed) const {
  const int64_t first = piece * kPiece;
  const auto padded_filters = static_cast<int64_t>(filter_offsets_.size());
  for_values(weight, first, std::min(first + kPiece, filters_), [=](int64_t from, int64_t to) {
    packed[to] = weight[from];
  });
  for (int64_t filter = first; filter < std::min(first + kPiece, padded_filters); ++filter) {
    const auto first_zero = static_cast<size_t>(filter < filters_ ? channels_ : 0);
    if (first_zero == channel_offsets_.size()) continue;
    for (const int64_t tap : tap_offsets_) {
      float* to = packed + filter_offsets_[static_cast<size_t>(filter)] + tap;
      for (size_t c = first_zero; c < channel_offsets_.size(); ++c) to[channel_offsets_[c]] = 0;
    }
  }
}

void WeightLayout::unpack(const float* packed, float* weight) const {
  for_values(weight, 0, filters_, [=](int64_t to, int64_t from) { weight[to] = packed[from]; });
}

}  // namespace lockstep::kernels::onednn
