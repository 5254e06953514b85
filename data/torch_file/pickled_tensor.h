// Locates a pickled tensor's elements in its storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/tensor.h"
#include "data/torch_file/pickle_reader.h"

namespace lockstep::data {

// An expanded tensor has more elements than its storage, but no more than these.
constexpr int64_t kMaxExpanded = int64_t{1} << 20;

// Returns the number of elements; nothing where one would lie outside the storage, or where there
// are more than the storage has and more than kMaxExpanded.
std::optional<int64_t> elements_of(const PickledTensor& tensor);

// Copies the elements in row-major order out of the storage's bytes. Requires: elements_of() counts
// them, `to` has their shape, and its type is the storage's; a negated tensor has floats.
void gather(const PickledTensor& from, std::span<const std::byte> storage, Tensor& to);

}  // namespace lockstep::data
