#include "kernels/support/onednn/shim.h"

#include <cstdlib>
#include <utility>

#include <fmt/core.h>
#include <omp.h>
#include <strings.h>

#include "core/check.h"
#include "core/error.h"
#include "core/memory_limit.h"
#include "kernels/support/isa.h"
#include "kernels/support/onednn/version.h"

namespace lockstep::kernels::onednn {
namespace {

#if defined(__x86_64__)
// Tells whether the user limits oneDNN to less than AVX2. oneDNN cannot be asked, since that would
// fix its limit.
bool is_limited_below_avx2() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* const limit = std::getenv(name);
    if (limit == nullptr) continue;
    return strcasecmp(limit, "SSE41") == 0 || strcasecmp(limit, "AVX") == 0;
  }
  return false;
}
#endif

dnnl::engine make_engine() {
#if defined(__x86_64__)
  switch (isa_level()) {  // before oneDNN detects the processor
    case IsaLevel::kV2:
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
      break;
    case IsaLevel::kV3:
      if (!is_limited_below_avx2()) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
      break;
    case IsaLevel::kV4:
      break;
  }
#endif
  return {dnnl::engine::kind::cpu, 0};
}

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine = make_engine();
  return engine;
}

// One per thread, because a stream must not be shared.
dnnl::stream& thread_stream() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

// Address space for generated code; oneDNN crashes if its code generator gets no memory.
constexpr size_t kCodeBytes = size_t{16} << 20;

// While this lives, primitives that the calling thread makes and runs are single-threaded.
// Otherwise each worker would fork an OpenMP team, or part of the work would be left undone if no
// team can be made. The destructor restores the setting, since the thread may be the program's own.
class OneOpenMpThread {
 public:
  OneOpenMpThread() { omp_set_num_threads(1); }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;
  ~OneOpenMpThread() { omp_set_num_threads(before_); }

 private:
  const int before_ = omp_get_max_threads();
};

template <class Make>
auto for_one_thread(const char* what, Make&& make) {
  const OneOpenMpThread one_thread;
  require_address_space(kCodeBytes, "oneDNN's code for an op");
  try {
    return make(cpu_engine());
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) {
      throw EnvironmentError(fmt::format("out of memory: oneDNN could not make {}", what),
                             memory_text(),
                             "a smaller batch or fewer ranks on this host",
                             Remedy::kSmallerBatch);
    }
    throw InternalError(fmt::format("[onednn] {}: {}", what, error.what()));
  }
}

dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// Makes the primitive descriptor of kind P from the arguments that oneDNN's versions 2 and 3 have
// in common.
template <class P, class... Args>
typename P::primitive_desc describe(const char* what, const Args&... args) {
  return for_one_thread(what, [&](const dnnl::engine& engine) {
#if DNNL_VERSION_MAJOR >= 3
    return typename P::primitive_desc(engine, args..., own_scratchpad());
#else
    return typename P::primitive_desc(typename P::desc(args...), own_scratchpad(), engine);
#endif
  });
}

// The same for a gradient, which needs its forward primitive's descriptor.
template <class P, class Forward, class... Args>
typename P::primitive_desc describe_gradient(const char* what,
                                             const Forward& forward,
                                             const Args&... args) {
  return for_one_thread(what, [&](const dnnl::engine& engine) {
#if DNNL_VERSION_MAJOR >= 3
    return typename P::primitive_desc(engine, args..., forward, own_scratchpad());
#else
    return typename P::primitive_desc(typename P::desc(args...), own_scratchpad(), engine, forward);
#endif
  });
}

dnnl::memory::data_type data_type_of(Dtype dtype) {
  using Type = dnnl::memory::data_type;
  return dtype == Dtype::kBF16 ? Type::bf16 : Type::f32;
}

dnnl::inner_product_forward::primitive_desc inner_product_forward(const MemoryDesc& in,
                                                                  const MemoryDesc& weight,
                                                                  const MemoryDesc& out) {
  return describe<dnnl::inner_product_forward>(
      "inner_product_forward", dnnl::prop_kind::forward_training, in, weight, out);
}

}  // namespace

dnnl::cpu_isa effective_isa() {
  cpu_engine();  // sets the limit
  return dnnl::get_effective_cpu_isa();
}

Dtype computing_type(Dtype stored) {
  static const bool has_bf16 = onednn_has_bf16();
  return stored == Dtype::kBF16 && has_bf16 ? Dtype::kBF16 : Dtype::kF32;
}

MemoryDesc desc_of(const Shape& shape, Dtype dtype, Format format) {
  dnnl::memory::dims extents;
  for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  return {extents, data_type_of(dtype), format};
}

MemoryDesc weights_desc(const Shape& weight, int groups, Dtype dtype) {
  if (groups == 1) return desc_of(weight, dtype, Format::any);
  return {{groups, weight[0] / groups, weight[1], weight[2], weight[3]},
          data_type_of(dtype),
          Format::any};
}

std::vector<int64_t> BlockedLayout::offsets(int axis) const {
  std::vector<int64_t> offsets;
  for (int64_t index = 0; index < padded[static_cast<size_t>(axis)]; ++index) {
    int64_t offset = 0;
    int64_t rest = index;
    int64_t stride = 1;
    for (size_t block = block_sizes.size(); block-- > 0;) {
      if (block_axes[block] == axis) {
        offset += rest % block_sizes[block] * stride;
        rest /= block_sizes[block];
      }
      stride *= block_sizes[block];
    }
    offsets.push_back(offset + rest * strides[static_cast<size_t>(axis)]);
  }
  return offsets;
}

BlockedLayout blocked_layout(const MemoryDesc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  const bool blocked = desc.get_format_kind() == dnnl::memory::format_kind::blocked;
  LS_CHECK(blocked, "[onednn] weights in a layout that is not blocked");
  return {.padded = desc.get_padded_dims(),
          .strides = desc.get_strides(),
          .block_sizes = desc.get_inner_blks(),
          .block_axes = desc.get_inner_idxs()};
#else
  const dnnl_memory_desc_t& d = desc.data;
  LS_CHECK(d.format_kind == dnnl_blocked, "[onednn] weights in a layout that is not blocked");
  const dnnl_blocking_desc_t& blocking = d.format_desc.blocking;
  return {.padded = {d.padded_dims, d.padded_dims + d.ndims},
          .strides = {blocking.strides, blocking.strides + d.ndims},
          .block_sizes = {blocking.inner_blks, blocking.inner_blks + blocking.inner_nblks},
          .block_axes = {blocking.inner_idxs, blocking.inner_idxs + blocking.inner_nblks}};
#endif
}

dnnl::memory memory_at(const MemoryDesc& desc, const void* data) {
  return {desc, cpu_engine(), const_cast<void*>(data)};  // inputs and outputs have one type there
}

Primitive::Primitive(const dnnl::primitive_desc_base& desc)
    : primitive_(for_one_thread("primitive",
                                [&](const dnnl::engine&) { return dnnl::primitive(desc.get()); })),
      scratchpad_(desc.scratchpad_desc()) {}

void Primitive::execute(Arguments arguments, std::byte* scratchpad) const {
  if (scratchpad_bytes() > 0) {
    arguments.emplace(DNNL_ARG_SCRATCHPAD, memory_at(scratchpad_, scratchpad));
  }
  const OneOpenMpThread one_thread;
  primitive_.execute(thread_stream(), arguments);
}

dnnl::convolution_forward::primitive_desc convolution_forward(const ConvolutionDescs& descs) {
  return describe<dnnl::convolution_forward>("convolution_forward",
                                             dnnl::prop_kind::forward_training,
                                             descs.algorithm,
                                             descs.in,
                                             descs.weight,
                                             descs.bias,
                                             descs.out,
                                             descs.stride,
                                             descs.pad,
                                             descs.pad);
}

dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const ConvolutionDescs& descs) {
  return describe_gradient<dnnl::convolution_backward_data>("convolution_backward_data",
                                                            convolution_forward(descs),
                                                            descs.algorithm,
                                                            descs.in,
                                                            descs.weight,
                                                            descs.out,
                                                            descs.stride,
                                                            descs.pad,
                                                            descs.pad);
}

dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const ConvolutionDescs& descs) {
  return describe_gradient<dnnl::convolution_backward_weights>("convolution_backward_weights",
                                                               convolution_forward(descs),
                                                               descs.algorithm,
                                                               descs.in,
                                                               descs.grad_weight,
                                                               descs.bias,
                                                               descs.out,
                                                               descs.stride,
                                                               descs.pad,
                                                               descs.pad);
}

bool offers_winograd() {
  static const bool offered = [] {
    const MemoryDesc activations = desc_of({1, 32, 8, 8}, Dtype::kF32, Format::any);
    const MemoryDesc weight = desc_of({32, 32, 3, 3}, Dtype::kF32, Format::any);
    const ConvolutionDescs descs{.in = activations,
                                 .weight = weight,
                                 .grad_weight = weight,
                                 .bias = {},
                                 .out = activations,
                                 .stride = {1, 1},
                                 .pad = {1, 1},
                                 .algorithm = dnnl::algorithm::convolution_winograd};
    try {
      convolution_backward_data(descs);
      convolution_backward_weights(descs);
      return true;
    } catch (const InternalError&) {
      return false;
    }
  }();
  return offered;
}

dnnl::reorder::primitive_desc reorder(const MemoryDesc& from, const MemoryDesc& to) {
  return for_one_thread("reorder", [&](const dnnl::engine& engine) {
    return dnnl::reorder::primitive_desc(engine, from, engine, to, own_scratchpad());
  });
}

dnnl::matmul::primitive_desc matmul(const MemoryDesc& left,
                                    const MemoryDesc& right,
                                    const MemoryDesc& bias,
                                    const MemoryDesc& out) {
  return describe<dnnl::matmul>("matmul", left, right, bias, out);
}

dnnl::inner_product_backward_data::primitive_desc inner_product_backward_data(
    const MemoryDesc& in, const MemoryDesc& weight, const MemoryDesc& out) {
  return describe_gradient<dnnl::inner_product_backward_data>(
      "inner_product_backward_data", inner_product_forward(in, weight, out), in, weight, out);
}

dnnl::inner_product_backward_weights::primitive_desc inner_product_backward_weights(
    const MemoryDesc& in,
    const MemoryDesc& weight,
    const MemoryDesc& grad_weight,
    const MemoryDesc& bias,
    const MemoryDesc& out) {
  return describe_gradient<dnnl::inner_product_backward_weights>(
      "inner_product_backward_weights",
      inner_product_forward(in, weight, out),
      in,
      grad_weight,
      bias,
      out);
}

}  // namespace lockstep::kernels::onednn
