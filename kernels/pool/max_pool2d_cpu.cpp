#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/pool/max_pool2d.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

constexpr int kRegister = Line::kVectorLanes;

// Load values as floats, and round them when they are stored.
template <int kCount, class T>
[[gnu::always_inline]] inline typename Vectors<kCount>::Floats load_values(const T* from) {
  if constexpr (kCount == 1) {
    return typename Vectors<1>::Floats{static_cast<float>(*from)};
  } else {
    return load_vector(from);
  }
}

template <int kCount, class T>
[[gnu::always_inline]] inline void store_values(T* to, typename Vectors<kCount>::Floats values) {
  if constexpr (kCount == 1) {
    *to = T(values[0]);
  } else {
    store_vector(values, to);
  }
}

// Converts between bytes and 32 bits in one instruction, or in two steps through 16 bits; for a
// direct conversion the compiler would process one channel at a time.
template <class Values, int kCount>
[[gnu::always_inline]] inline Values load_winner(const uint8_t* from) {
  if constexpr (std::is_same_v<Values, LineInts>) {
    return load_bytes(from);
  } else {
    const auto bytes = load_as<typename Vectors<kCount>::Bytes>(from);
    const auto shorts = __builtin_convertvector(bytes, typename Vectors<kCount>::Shorts);
    return __builtin_convertvector(shorts, Values);
  }
}

template <int kCount>
[[gnu::always_inline]] inline void store_winner(uint8_t* to,
                                                typename Vectors<kCount>::Ints winner) {
  using Bytes = typename Vectors<kCount>::Bytes;
  if constexpr (LS_ISA == 4) {
    store_as(to, __builtin_convertvector(winner, Bytes));
  } else {
    const auto shorts = __builtin_convertvector(winner, typename Vectors<kCount>::Shorts);
    store_as(to, __builtin_convertvector(shorts, Bytes));
  }
}

// Calls body(c) such that the ranges [c, c + kCount) cover the channels; the last may overlap the
// one before it. Requires: channels >= kCount.
template <int kCount, class Body>
[[gnu::always_inline]] inline void for_channels(int64_t channels, Body&& body) {
  int64_t c = 0;
  for (; c + kCount <= channels; c += kCount) body(c);
  if (c < channels) body(channels - kCount);
}

struct Range {
  int64_t begin, end;
};

// The windows along one axis. kKernel = 0: the geometry is known only at run time.
template <int kKernel, int kStride, int kPad>
class Axis {
 public:
  Axis(int64_t in, int64_t out, int kernel, int stride, int pad)
      : in_(in), out_(out), kernel_(kernel), stride_(stride), pad_(pad) {}

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  int64_t kernel() const { return kKernel > 0 ? kKernel : kernel_; }
  int64_t stride() const { return kKernel > 0 ? kStride : stride_; }
  int64_t pad() const { return kKernel > 0 ? kPad : pad_; }

  // The input under tap 0 of output o; it may be in the padding.
  int64_t first(int64_t o) const { return o * stride() - pad(); }
  // True when every input lies in exactly one window.
  bool tiles() const { return kernel() == stride() && pad() == 0 && out_ * stride() == in_; }
  // The taps of output o that are inside the image: at least one.
  Range taps(int64_t o) const {
    if (pad() == 0) return {0, kernel()};
    return {first(o) < 0 ? -first(o) : 0, first(o) + kernel() > in_ ? in_ - first(o) : kernel()};
  }
  // Outputs whose windows hold input i.
  Range outputs(int64_t i) const {
    const int64_t at = i + pad();
    const int64_t last = at / stride();
    return {at < kernel() ? 0 : (at - kernel()) / stride() + 1, last < out_ ? last + 1 : out_};
  }

 private:
  int64_t in_, out_, kernel_, stride_, pad_;
};

template <int kCount, class T, class AnyAxis>
void forward_image(const AnyAxis rows,
                   const AnyAxis columns,
                   int64_t channels,
                   const T* in,
                   T* out,
                   uint8_t* winner) {
  using Floats = typename Vectors<kCount>::Floats;
  using Ints = typename Vectors<kCount>::Ints;
  for (int64_t oy = 0; oy < rows.out(); ++oy) {
    const Range ys = rows.taps(oy);
    for (int64_t ox = 0; ox < columns.out(); ++ox) {
      const Range xs = columns.taps(ox);
      const int64_t corner = rows.first(oy) * columns.in() + columns.first(ox);
      for_channels<kCount>(channels, [&](int64_t c) {
        Floats best = Floats{} - std::numeric_limits<float>::infinity();
        Ints argmax = Ints{} + static_cast<int32_t>(ys.begin * columns.kernel() + xs.begin);
        for (int64_t ky = ys.begin; ky < ys.end; ++ky) {
          for (int64_t kx = xs.begin; kx < xs.end; ++kx) {
            const Floats value =
                load_values<kCount>(in + (corner + ky * columns.in() + kx) * channels + c);
            const Ints wins = (value > best) | (value != value);
            best = wins ? value : best;
            argmax = wins ? Ints{} + static_cast<int32_t>(ky * columns.kernel() + kx) : argmax;
          }
        }
        store_values<kCount>(out + c, best);
        store_winner<kCount>(winner + c, argmax);
      });
      out += channels;
      winner += channels;
    }
  }
}

// Copies values as bits. Requires: windows do not overlap.
template <int kCount, class T, class AnyAxis>
void scatter_image(const AnyAxis rows,
                   const AnyAxis columns,
                   int64_t channels,
                   const T* grad_out,
                   const uint8_t* winner,
                   T* grad_in) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>;
  using Values [[gnu::vector_size(kCount * sizeof(T))]] = Bits;
  if (!rows.tiles() || !columns.tiles()) {
    std::fill_n(grad_in, rows.in() * columns.in() * channels, T{});
  }
  for (int64_t oy = 0; oy < rows.out(); ++oy) {
    const Range ys = rows.taps(oy);
    for (int64_t ox = 0; ox < columns.out(); ++ox) {
      const Range xs = columns.taps(ox);
      const int64_t corner = rows.first(oy) * columns.in() + columns.first(ox);
      for_channels<kCount>(channels, [&](int64_t c) {
        const auto grad = load_as<Values>(grad_out + c);
        const auto argmax = load_winner<Values, kCount>(winner + c);
        for (int64_t ky = ys.begin; ky < ys.end; ++ky) {
          for (int64_t kx = xs.begin; kx < xs.end; ++kx) {
            const auto won = argmax == static_cast<Bits>(ky * columns.kernel() + kx);
            store_as(grad_in + (corner + ky * columns.in() + kx) * channels + c,
                     won ? grad : Values{});
          }
        }
      });
      grad_out += channels;
      winner += channels;
    }
  }
}

// An output whose window holds the current input, and the input's tap in that window.
struct Source {
  int64_t pixel;
  int32_t tap;
};
constexpr int kMaxSources = 256;  // as many as taps

// Each input gathers from the outputs whose windows hold it.
template <int kCount, class T, class AnyAxis>
void gather_image(const AnyAxis rows,
                  const AnyAxis columns,
                  int64_t channels,
                  const T* grad_out,
                  const uint8_t* winner,
                  T* grad_in) {
  using Floats = typename Vectors<kCount>::Floats;
  using Ints = typename Vectors<kCount>::Ints;
  Source sources[kMaxSources];
  for (int64_t y = 0; y < rows.in(); ++y) {
    const Range oys = rows.outputs(y);
    for (int64_t x = 0; x < columns.in(); ++x) {
      const Range oxs = columns.outputs(x);
      int count = 0;
      for (int64_t oy = oys.begin; oy < oys.end; ++oy) {
        for (int64_t ox = oxs.begin; ox < oxs.end; ++ox) {
          const int64_t tap = (y - rows.first(oy)) * columns.kernel() + x - columns.first(ox);
          sources[count++] = {oy * columns.out() + ox, static_cast<int32_t>(tap)};
        }
      }
      for_channels<kCount>(channels, [&](int64_t c) {
        Floats sum{};
        for (int i = 0; i < count; ++i) {
          const int64_t at = sources[i].pixel * channels + c;
          const auto won = load_winner<Ints, kCount>(winner + at) == sources[i].tap;
          sum += won ? load_values<kCount>(grad_out + at) : Floats{};
        }
        store_values<kCount>(grad_in + c, sum);
      });
      grad_in += channels;
    }
  }
}

// Calls body(lanes, rows, columns), with the windows of common networks as compile-time constants.
template <class Body>
[[gnu::always_inline]] inline void specialize(const Shape& in,
                                              const Shape& out,
                                              const MaxPool2dParams& p,
                                              Body&& body) {
  const auto with = [&]<int kCount, int kKernel, int kStride, int kPad>() {
    using Known = Axis<kKernel, kStride, kPad>;
    body(std::integral_constant<int, kCount>{},
         Known(in[2], out[2], p.kernel_h, p.stride_h, p.pad_h),
         Known(in[3], out[3], p.kernel_w, p.stride_w, p.pad_w));
  };
  const auto square = [&](int kernel, int stride, int pad) {
    return p.kernel_h == kernel && p.kernel_w == kernel && p.stride_h == stride &&
           p.stride_w == stride && p.pad_h == pad && p.pad_w == pad;
  };
  if (in[1] < kRegister) return with.template operator()<1, 0, 0, 0>();
  if (square(2, 2, 0)) return with.template operator()<kRegister, 2, 2, 0>();
  if (square(3, 2, 1)) return with.template operator()<kRegister, 3, 2, 1>();
  with.template operator()<kRegister, 0, 0, 0>();
}

}  // namespace

void max_pool2d_forward(Stream& stream,
                        const Shards& shards,
                        const Tensor& in,
                        const MaxPool2dParams& params,
                        Tensor& out,
                        Tensor& winner) {
  const int64_t in_image = in.shape().stride0();
  const int64_t out_image = out.shape().stride0();
  uint8_t* argmax = winner.data<uint8_t>();
  const auto pool = [&]<class T>(auto count, auto rows, auto columns) {
    const T* from = in.data<T>();
    T* to = out.data<T>();
    for_images(stream, shards, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        forward_image<count>(rows,
                             columns,
                             in.shape()[1],
                             from + n * in_image,
                             to + n * out_image,
                             argmax + n * out_image);
      }
    });
  };
  dispatch_float(in.dtype(), [&]<class T>() {
    specialize(in.shape(), out.shape(), params, [&](auto... axes) {
      pool.template operator()<T>(axes...);
    });
  });
}

void max_pool2d_backward(Stream& stream,
                         const Shards& shards,
                         const Tensor& grad_out,
                         const Tensor& winner,
                         const MaxPool2dParams& params,
                         Tensor& grad_in) {
  const int64_t in_image = grad_in.shape().stride0();
  const int64_t out_image = grad_out.shape().stride0();
  const uint8_t* argmax = winner.data<uint8_t>();
  const auto pool = [&]<class T>(auto count, auto rows, auto columns) {
    const T* from = grad_out.data<T>();
    T* to = grad_in.data<T>();
    const bool overlap = rows.stride() < rows.kernel() || columns.stride() < columns.kernel();
    const auto backward_image =
        overlap ? gather_image<count, T, decltype(rows)> : scatter_image<count, T, decltype(rows)>;
    for_images(stream, shards, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        backward_image(rows,
                       columns,
                       grad_in.shape()[1],
                       from + n * out_image,
                       argmax + n * out_image,
                       to + n * in_image);
      }
    });
  };
  dispatch_float(grad_in.dtype(), [&]<class T>() {
    specialize(grad_in.shape(), grad_out.shape(), params, [&](auto... axes) {
      pool.template operator()<T>(axes...);
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
