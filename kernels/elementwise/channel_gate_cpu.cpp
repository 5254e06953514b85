#include "kernels/elementwise/channel_gate.h"
#include "kernels/elementwise/channel_gate_rule.h"
#include "kernels/support/cpu/cpu_loops.h"
#include "kernels/support/cpu/float_line.h"

namespace lockstep::kernels::LS_CPU {
namespace {

constexpr int64_t kChannelsAtOnce = 1024;  // their gates and sums stay in the L1 cache

struct Piece {
  int64_t image, first, count;  // channels
};

// Calls body(piece, gates) for pieces of images, where gates[i] is g of channel first + i. Whole
// lines may be loaded from gates.
template <class T, GateForm kForm, class Body>
[[gnu::always_inline]] inline void for_pieces(Stream& stream,
                                              const Shards& shards,
                                              const Tensor& gate,
                                              Body&& body) {
  const int64_t channels = gate.shape()[1];
  const T* all = gate.data<T>();
  for_images(stream, shards, [&](int64_t begin, int64_t end) {
    float gates[kChannelsAtOnce];
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t c = 0; c < channels; c += kChannelsAtOnce) {
        const Piece piece{n, c, std::min(kChannelsAtOnce, channels - c)};
        const T* of_piece = all + n * channels + c;
        for (int64_t i = 0; i < piece.count; ++i) {
          gates[i] = gate_value<kForm>(static_cast<float>(of_piece[i]));
        }
        body(piece, gates);
      }
    }
  });
}

// body.operator()<T, form>().
template <class Body>
[[gnu::always_inline]] inline void with_gate_type(Dtype dtype, GateForm form, Body&& body) {
  dispatch_float(dtype, [&]<class T>() {
    with_gate_form(form, [&]<GateForm kForm>() { body.template operator()<T, kForm>(); });
  });
}

}  // namespace

void channel_gate_forward(Stream& stream,
                          const Shards& shards,
                          const Tensor& in,
                          const Tensor& gate,
                          GateForm form,
                          Tensor& out) {
  const int64_t channels = in.shape()[1];
  const int64_t pixels = in.shape()[2] * in.shape()[3];
  with_gate_type(in.dtype(), form, [&]<class T, GateForm kForm>() {
    const T* from = in.data<T>();
    T* to = out.data<T>();
    for_pieces<T, kForm>(stream, shards, gate, [=](const Piece& piece, const float* gates) {
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t at = (piece.image * pixels + p) * channels + piece.first;
        const auto gated_by = [](const Line& value, const Line& factor) { return value * factor; };
        map_lines(piece.count, to + at, gated_by, from + at, gates);
      }
    });
  });
}

void channel_gate_backward(Stream& stream,
                           const Shards& shards,
                           const ChannelGateBackwardArgs& args) {
  const Shape& shape = args.in.shape();
  const int64_t channels = shape[1];
  const int64_t pixels = shape[2] * shape[3];
  with_gate_type(args.in.dtype(), args.form, [&]<class T, GateForm kForm>() {
    const T* gradient = args.grad_out.data<T>();
    const T* from = args.in.data<T>();
    const T* logits = args.gate.data<T>();
    T* to = args.grad_in.data<T>();
    T* to_gate = args.grad_gate.data<T>();
    for_pieces<T, kForm>(stream, shards, args.gate, [=](const Piece& piece, const float* gates) {
      float sums[kChannelsAtOnce];
      std::fill_n(sums, piece.count, 0.0F);
      for (int64_t p = 0; p < pixels; ++p) {
        const int64_t at = (piece.image * pixels + p) * channels + piece.first;
        const auto added = [](const Line& sum, const Line& g, const Line& x) {
          return sum + g * x;
        };
        const auto gated_by = [](const Line& g, const Line& factor) { return g * factor; };
        map_lines(piece.count, sums, added, sums, gradient + at, from + at);
        map_lines(piece.count, to + at, gated_by, gradient + at, gates);
      }
      const int64_t first = piece.image * channels + piece.first;
      for (int64_t i = 0; i < piece.count; ++i) {
        sums[i] = gate_gradient<kForm>(static_cast<float>(logits[first + i]), sums[i]);
      }
      convert(sums, piece.count, to_gate + first);
    });
  });
}

}  // namespace lockstep::kernels::LS_CPU
