#include "kernels/support/onednn/weights.h"

#include <algorithm>

#include "core/round_up.h"
#include "kernels/support/cpu/widen.h"

namespace lockstep::kernels::onednn {
namespace {

constexpr int64_t kPiece = 64;  // filters
// Values that are neighbors in one layout are far apart in the other, so the copy goes tile by
// tile.
constexpr int64_t kTileFilters = 16;
constexpr int64_t kTileChannels = 64;
constexpr int64_t kRun = 8;  // channels in a run, whose offsets need no lookup

// The positions of a run's channels: equally spaced, or in 16 bits as equally spaced pairs.
struct RunSteps {
  explicit RunSteps(const int64_t* offsets)
      : within_pair(offsets[1] - offsets[0]), between_pairs(offsets[2] - offsets[0]) {}
  int64_t operator[](int64_t i) const { return i / 2 * between_pairs + i % 2 * within_pair; }

  int64_t within_pair, between_pairs;
};

bool steps_are_even(const std::vector<int64_t>& offsets) {
  for (size_t run = 0; run + kRun <= offsets.size(); run += kRun) {
    const RunSteps steps(&offsets[run]);
    for (size_t i = 0; i < kRun; ++i) {
      if (offsets[run + i] != offsets[run] + steps[static_cast<int64_t>(i)]) return false;
    }
  }
  return true;
}

// The offsets of the filters of all groups, followed by those of the padding.
std::vector<int64_t> filter_offsets(const std::vector<int64_t>& of_groups,
                                    const std::vector<int64_t>& of_filters,
                                    size_t groups,
                                    size_t filters) {
  std::vector<int64_t> offsets, padding;
  for (size_t g = 0; g < of_groups.size(); ++g) {
    for (size_t k = 0; k < of_filters.size(); ++k) {
      (g < groups && k < filters ? offsets : padding).push_back(of_groups[g] + of_filters[k]);
    }
  }
  offsets.insert(offsets.end(), padding.begin(), padding.end());
  return offsets;
}

constexpr int64_t kWidenedTogether = 16384;  // values

}  // namespace

size_t widened_bytes(const Tensor& weight) {
  if (weight.dtype() == computing_type(weight.dtype())) return 0;
  return aligned(static_cast<size_t>(weight.numel()) * sizeof(float));
}

const std::byte* widened(Stream& stream, const Tensor& weight, std::byte* scratch) {
  if (widened_bytes(weight) == 0) return weight.bytes();
  const int64_t values = weight.numel();
  stream.fork(ceil_div(values, kWidenedTogether), [&](int64_t task, int) {
    const int64_t first = task * kWidenedTogether;
    widen(weight.dtype(),
          weight.bytes() + static_cast<size_t>(first) * size_of(weight.dtype()),
          std::min(kWidenedTogether, values - first),
          reinterpret_cast<float*>(scratch) + first);
  });
  return scratch;
}

WeightLayout::WeightLayout(const Shape& weight, int groups, const MemoryDesc& packed)
    : filters_(weight[0]), channels_(weight[1]), taps_(weight[2] * weight[3]) {
  const BlockedLayout layout = blocked_layout(packed);
  const int axis = groups == 1 ? 0 : 1;  // of the filters
  filter_offsets_ = filter_offsets(groups == 1 ? std::vector<int64_t>{0} : layout.offsets(0),
                                   layout.offsets(axis),
                                   static_cast<size_t>(groups),
                                   static_cast<size_t>(filters_ / groups));
  channel_offsets_ = layout.offsets(axis + 1);
  for (const int64_t row : layout.offsets(axis + 2)) {
    for (const int64_t column : layout.offsets(axis + 3)) tap_offsets_.push_back(row + column);
  }
  even_steps_ = steps_are_even(channel_offsets_);
}

int64_t WeightLayout::pieces() const {
  return ceil_div<int64_t>(std::ssize(filter_offsets_), kPiece);
}

template <class T, class Move>
void WeightLayout::for_values(const T* weight, int64_t first, int64_t last, Move&& move) const {
  const int64_t* channel_offsets = channel_offsets_.data();
  const auto move_channels = [&](int64_t plain, int64_t packed, int64_t begin, int64_t end) {
    for (int64_t i = 0; i < kTileChannels; i += 16) __builtin_prefetch(weight + plain + end + i);
    int64_t c = begin;
    for (; even_steps_ && c + kRun <= end; c += kRun) {
      const int64_t start = packed + channel_offsets[c];
      const RunSteps steps(channel_offsets + c);
      for (int64_t i = 0; i < kRun; ++i) move(plain + c + i, start + steps[i]);
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

template <class T>
void WeightLayout::pack_values(int64_t piece, const T* weight, T* packed) const {
  const int64_t first = piece * kPiece;
  const auto padded_filters = static_cast<int64_t>(filter_offsets_.size());
  for_values(weight, first, std::min(first + kPiece, filters_), [=](int64_t from, int64_t to) {
    packed[to] = weight[from];
  });
  for (int64_t filter = first; filter < std::min(first + kPiece, padded_filters); ++filter) {
    const auto first_zero = static_cast<size_t>(filter < filters_ ? channels_ : 0);
    if (first_zero == channel_offsets_.size()) continue;
    for (const int64_t tap : tap_offsets_) {
      T* to = packed + filter_offsets_[static_cast<size_t>(filter)] + tap;
      for (size_t c = first_zero; c < channel_offsets_.size(); ++c) to[channel_offsets_[c]] = T{};
    }
  }
}

void WeightLayout::pack(int64_t piece,
                        Dtype dtype,
                        const std::byte* weight,
                        std::byte* packed) const {
  if (dtype == Dtype::kF32) {
    return pack_values(
        piece, reinterpret_cast<const float*>(weight), reinterpret_cast<float*>(packed));
  }
  pack_values(
      piece, reinterpret_cast<const BFloat16*>(weight), reinterpret_cast<BFloat16*>(packed));
}

void WeightLayout::unpack(const float* packed, float* weight) const {
  for_values(weight, 0, filters_, [=](int64_t to, int64_t from) { weight[to] = packed[from]; });
}

}  // namespace lockstep::kernels::onednn
