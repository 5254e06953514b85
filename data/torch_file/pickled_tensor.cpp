#include "data/torch_file/pickled_tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

namespace lockstep::data {
namespace {

bool is_row_major(const PickledTensor& tensor) {
  int64_t expected = 1;
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

void copy_elements(const PickledTensor& from, std::span<const std::byte> storage, Tensor& to) {
  const size_t size = size_of(to.dtype());
  const std::byte* first = storage.data() + static_cast<size_t>(from.offset) * size;
  if (is_row_major(from)) {
    if (to.nbytes() > 0) std::memcpy(to.bytes(), first, to.nbytes());
    return;
  }
  std::vector<int64_t> index(from.shape.size());
  int64_t place = 0;
  for (int64_t i = 0; i < to.numel(); ++i) {
    std::memcpy(to.bytes() + static_cast<size_t>(i) * size,
                first + static_cast<size_t>(place) * size,
                size);
    for (size_t axis = index.size(); axis-- > 0;) {
      place += from.strides[axis];
      if (++index[axis] < from.shape[axis]) break;
      place -= index[axis] * from.strides[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

std::optional<int64_t> elements_of(const PickledTensor& tensor) {
  const int64_t stored = tensor.storage.elements;
  if (tensor.offset < 0 || tensor.offset > stored) return std::nullopt;
  int64_t most = 1;  // zeros count as ones: products of some extents and strides must not overflow
  for (const int64_t extent : tensor.shape) {
    const int64_t counted = std::max<int64_t>(extent, 1);
    if (extent < 0 || counted > std::numeric_limits<int64_t>::max() / most) return std::nullopt;
    most *= counted;
  }
  if (std::ranges::find(tensor.shape, 0) != tensor.shape.end()) return 0;
  const int64_t limit = std::max(stored, kMaxExpanded);
  int64_t count = 1;
  int64_t last = tensor.offset;
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    const int64_t extent = tensor.shape[axis];
    const int64_t stride = tensor.strides[axis];
    if (extent > limit / count || stride < 0 || stride > stored) return std::nullopt;
    count *= extent;
    if (extent > 1 && stride > (stored - last) / (extent - 1)) return std::nullopt;
    last += (extent - 1) * (extent > 1 ? stride : 0);
  }
  return last < stored ? std::optional(count) : std::nullopt;
}

void gather(const PickledTensor& from, std::span<const std::byte> storage, Tensor& to) {
  copy_elements(from, storage, to);
  if (!from.negated) return;
  constexpr std::byte kSign{0x80};
  for (size_t end = size_of(to.dtype()); end <= to.nbytes(); end += size_of(to.dtype())) {
    to.bytes()[end - 1] ^= kSign;
  }
}

}  // namespace lockstep::data
