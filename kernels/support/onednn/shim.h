// The part of oneDNN that ops use, with the same interface for versions 2 and 3: primitives that
// run only on the calling thread and sum in f32. Included by <op>_onednn.cpp and onednn_*.cpp files
// only.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

#include "core/dtype.h"
#include "core/round_up.h"
#include "core/shape.h"

namespace lockstep::kernels::onednn {

using MemoryDesc = dnnl::memory::desc;
using Format = dnnl::memory::format_tag;
using Arguments = std::unordered_map<int, dnnl::memory>;  // by DNNL_ARG_*

inline constexpr size_t kAlignment = 64;

inline size_t aligned(size_t bytes) {
  return round_up(bytes, kAlignment);
}

// oneDNN's instruction set, limited by LOCKSTEP_ISA.
dnnl::cpu_isa effective_isa();

// Returns the type in which primitives compute for tensors of type `stored`: the same, or f32 if
// oneDNN has no arithmetic for it.
Dtype computing_type(Dtype stored);

// Requires: kF32 or kBF16. oneDNN names extents as Shape does; Format::any leaves the layout to the
// primitive.
MemoryDesc desc_of(const Shape& shape, Dtype dtype, Format format);

// Weights (K,C/groups,R,S) in a layout that is left to the primitive: in groups, oneDNN's extents
// are (groups,K/groups,C/groups,R,S). Requires: as above.
MemoryDesc weights_desc(const Shape& weight, int groups, Dtype dtype);

// A layout in which axes are cut into blocks. An index on an axis is split into one digit per block
// of that axis, the innermost block last, and a remainder, which is multiplied by the axis's
// stride.
struct BlockedLayout {
  dnnl::memory::dims padded, strides;          // by axis
  dnnl::memory::dims block_sizes, block_axes;  // by block

  // Returns the offset that each index of an axis, padding included, contributes to a value's
  // position.
  std::vector<int64_t> offsets(int axis) const;
};

// Errors: InternalError for a layout that is not blocked.
BlockedLayout blocked_layout(const MemoryDesc& desc);

// The caller's memory as an argument; nothing is owned or copied. oneDNN may write zeros to the
// padding of a blocked layout: bind memory that workers share before they fork.
dnnl::memory memory_at(const MemoryDesc& desc, const void* data);

// A single-threaded primitive. Thread safety: many threads may execute it at once, each with its
// own scratchpad.
class Primitive {
 public:
  explicit Primitive(const dnnl::primitive_desc_base& desc);

  size_t scratchpad_bytes() const { return scratchpad_.get_size(); }
  void execute(Arguments arguments, std::byte* scratchpad) const;

 private:
  dnnl::primitive primitive_;
  MemoryDesc scratchpad_;
};

// Memory descriptors that a convolution and both its gradients share. bias may be empty.
struct ConvolutionDescs {
  MemoryDesc in, weight, grad_weight, bias, out;
  dnnl::memory::dims stride, pad;
  dnnl::algorithm algorithm = dnnl::algorithm::convolution_direct;
};

// True where oneDNN has Winograd's algorithm for 3x3 convolutions and their gradients.
bool offers_winograd();

// Errors: InternalError with oneDNN's own message when it has no primitive for these.
dnnl::convolution_forward::primitive_desc convolution_forward(const ConvolutionDescs& descs);
dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const ConvolutionDescs& descs);
dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const ConvolutionDescs& descs);
dnnl::reorder::primitive_desc reorder(const MemoryDesc& from, const MemoryDesc& to);
dnnl::matmul::primitive_desc matmul(const MemoryDesc& left,
                                    const MemoryDesc& right,
                                    const MemoryDesc& bias,
                                    const MemoryDesc& out);
dnnl::inner_product_backward_data::primitive_desc inner_product_backward_data(
    const MemoryDesc& in, const MemoryDesc& weight, const MemoryDesc& out);
dnnl::inner_product_backward_weights::primitive_desc inner_product_backward_weights(
    const MemoryDesc& in,
    const MemoryDesc& weight,
    const MemoryDesc& grad_weight,
    const MemoryDesc& bias,
    const MemoryDesc& out);

}  // namespace lockstep::kernels::onednn
