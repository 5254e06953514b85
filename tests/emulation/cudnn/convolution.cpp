#include "tests/emulation/cudnn/convolution.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace lockstep::emulation {
namespace {

double read(const std::byte* at, cudnnDataType_t type) {
  if (type == CUDNN_DATA_FLOAT) {
    float value = 0;
    std::memcpy(&value, at, sizeof(value));
    return static_cast<double>(value);
  }
  if (type == CUDNN_DATA_HALF) {
    _Float16 value = 0;
    std::memcpy(&value, at, sizeof(value));
    return static_cast<double>(value);
  }
  uint16_t high = 0;
  std::memcpy(&high, at, sizeof(high));
  return static_cast<double>(std::bit_cast<float>(uint32_t{high} << 16));
}

uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void write(std::byte* at, cudnnDataType_t type, float value) {
  if (type == CUDNN_DATA_FLOAT) {
    std::memcpy(at, &value, sizeof(value));
  } else if (type == CUDNN_DATA_HALF) {
    const auto rounded = static_cast<_Float16>(value);
    std::memcpy(at, &rounded, sizeof(rounded));
  } else {
    const uint16_t rounded = to_bfloat16(value);
    std::memcpy(at, &rounded, sizeof(rounded));
  }
}

double to_tf32(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<double>(std::bit_cast<float>((bits + 0x1000) & ~uint32_t{0x1fff}));
}

// Calls visit(address, index) for each element; `index` counts them in the order N, H, W, C.
template <class Visit>
void for_each_element(const CudnnTensor& tensor, std::byte* memory, Visit&& visit) {
  const auto [images, channels, height, width] = tensor.extents;
  const auto element = static_cast<int64_t>(bytes_of_element(tensor.type));
  size_t index = 0;
  for (int64_t n = 0; n < images; ++n)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t at = n * tensor.strides[0] + c * tensor.strides[1] + y * tensor.strides[2] +
                             x * tensor.strides[3];
          visit(memory + at * element, index++);
        }
}

std::vector<double> values_of(const CudnnTensor& tensor, const CudnnPlaces& places) {
  std::vector<double> values(static_cast<size_t>(tensor.numel()));
  for_each_element(
      tensor, static_cast<std::byte*>(places(tensor)), [&](const std::byte* at, size_t index) {
        values[index] = read(at, tensor.type);
      });
  return values;
}

// The channel vectors of all pixels, contiguous, in the order N, H, W.
struct Rows {
  explicit Rows(const CudnnTensor& tensor, std::vector<double> its_values)
      : extents(tensor.extents), values(std::move(its_values)) {}

  double* at(int64_t n, int64_t y, int64_t x) {
    return values.data() + ((n * extents[2] + y) * extents[3] + x) * extents[1];
  }

  std::array<int64_t, 4> extents;
  std::vector<double> values;
};

// Calls visit(n, oy, ox, y, x, r, s) for each combination of output pixel and filter tap whose
// input is not padding.
template <class Visit>
void for_each_window(const Convolution& work, Visit&& visit) {
  for (int64_t n = 0; n < work.out.extents[0]; ++n)
    for (int64_t oy = 0; oy < work.out.extents[2]; ++oy)
      for (int64_t ox = 0; ox < work.out.extents[3]; ++ox)
        for (int64_t r = 0; r < work.weight.extents[2]; ++r)
          for (int64_t s = 0; s < work.weight.extents[3]; ++s) {
            const int64_t y = oy * work.strides[0] - work.pads[0] + r * work.dilations[0];
            const int64_t x = ox * work.strides[1] - work.pads[1] + s * work.dilations[1];
            if (y < 0 || y >= work.in.extents[2] || x < 0 || x >= work.in.extents[3]) continue;
            visit(n, oy, ox, y, x, r, s);
          }
}

// The operands of one execution as doubles, and the destination of its sums.
struct Operands {
  Rows in, weight, out;

  // Adds the products of one part. Parts divide the input channels (forward), the output channels
  // (backward data) or the output lines (backward weight).
  void add_part(const Convolution& work, int64_t part, int64_t parts);
};

void Operands::add_part(const Convolution& work, int64_t part, int64_t parts) {
  const int64_t channels = out.extents[1], group_channels = weight.extents[1];
  const int64_t group_outputs = channels / work.groups();
  const int64_t all = work.pass == CudnnPass::kForward        ? group_channels
                      : work.pass == CudnnPass::kBackwardData ? group_outputs
                                                              : out.extents[0] * out.extents[2];
  const int64_t first = all * part / parts, end = all * (part + 1) / parts;
  for_each_window(
      work, [&](int64_t n, int64_t oy, int64_t ox, int64_t y, int64_t x, int64_t r, int64_t s) {
        const int64_t line = n * out.extents[2] + oy;
        if (work.pass == CudnnPass::kBackwardWeight && (line < first || line >= end)) return;
        for (int64_t k = 0; k < channels; ++k) {
          double& to = out.at(n, oy, ox)[k];
          double* const from = in.at(n, y, x) + k / group_outputs * group_channels;
          double* const factors = weight.at(k, r, s);
          if (work.pass == CudnnPass::kForward) {
            double sum = 0;
            for (int64_t c = first; c < end; ++c) sum += from[c] * factors[c];
            to += sum;
          } else if (work.pass == CudnnPass::kBackwardWeight) {
            for (int64_t c = 0; c < group_channels; ++c) factors[c] += to * from[c];
          } else if (k % group_outputs >= first && k % group_outputs < end) {
            for (int64_t c = 0; c < group_channels; ++c) from[c] += to * factors[c];
          }
        }
      });
}

// max(0, in * scale + shift). A NaN remains NaN.
void norm(std::vector<double>& in,
          const std::vector<double>& scales,
          const std::vector<double>& shifts) {
  for (size_t i = 0; i < in.size(); ++i) {
    const auto scaled = static_cast<float>(in[i] * scales[i % scales.size()]);
    const float value = scaled + static_cast<float>(shifts[i % shifts.size()]);
    in[i] = value <= 0 ? 0.0 : static_cast<double>(value);
  }
}

}  // namespace

size_t bytes_of_element(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT:
      return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    default:
      return 0;
  }
}

size_t CudnnTensor::bytes() const {
  int64_t last = 0;
  for (size_t i = 0; i < extents.size(); ++i) last += (extents[i] - 1) * strides[i];
  return static_cast<size_t>(last + 1) * bytes_of_element(type);
}

const CudnnTensor& Convolution::result() const {
  return pass == CudnnPass::kForward ? out : pass == CudnnPass::kBackwardData ? in : weight;
}

std::vector<CudnnTensor> Convolution::results() const {
  std::vector<CudnnTensor> all = {result()};
  for (const auto& one : {sums, square_sums}) {
    if (one) all.push_back(*one);
  }
  return all;
}

std::vector<CudnnTensor> Convolution::tensors() const {
  std::vector<CudnnTensor> all = {in, weight, out};
  for (const auto& one : {bias, sums, square_sums, scale, shift}) {
    if (one) all.push_back(*one);
  }
  return all;
}

void Convolution::sum_parts(const CudnnPlaces& places,
                            int64_t parts,
                            Rounding rounding,
                            float* to) const {
  const auto read_or_zero = [&](const CudnnTensor& tensor) {
    std::vector<double> values(static_cast<size_t>(tensor.numel()));
    if (&tensor != &result()) values = values_of(tensor, places);
    return values;
  };
  Operands operands{
      Rows(in, read_or_zero(in)), Rows(weight, read_or_zero(weight)), Rows(out, read_or_zero(out))};
  if (scale) norm(operands.in.values, values_of(*scale, places), values_of(*shift, places));
  std::vector<double>& sums_of_part = pass == CudnnPass::kForward        ? operands.out.values
                                      : pass == CudnnPass::kBackwardData ? operands.in.values
                                                                         : operands.weight.values;
  for (Rows* const rows : {&operands.in, &operands.weight, &operands.out}) {
    if (scale && rows == &operands.in) {  // the normalized values are rounded to the type of `in`
      std::byte memory[4];
      for (double& value : rows->values) {
        write(memory, in.type, static_cast<float>(value));
        value = read(memory, in.type);
      }
    }
    if (!rounding.narrow || &rows->values == &sums_of_part) continue;
    for (double& value : rows->values) value = to_tf32(value);
  }
  for (int64_t part = 0; part < parts; ++part) {
    sums_of_part.assign(sums_of_part.size(), 0.0);
    operands.add_part(*this, part, parts);
    float* const row = to + part * outputs();
    for (size_t i = 0; i < sums_of_part.size(); ++i) {
      row[i] = static_cast<float>(sums_of_part[i]);
      if (rounding.reduced) row[i] = static_cast<float>(static_cast<_Float16>(row[i]));
    }
  }
}

void Convolution::finish(const CudnnPlaces& places, int64_t parts, const float* from) const {
  const CudnnTensor& to = result();
  const auto channels = static_cast<size_t>(to.extents[1]);
  const std::vector<double> offsets = bias ? values_of(*bias, places) : std::vector<double>();
  std::vector<double> values(channels), squares(channels);
  for_each_element(to, static_cast<std::byte*>(places(to)), [&](std::byte* at, size_t index) {
    float sum = from[index];
    for (int64_t part = 1; part < parts; ++part) {
      sum += from[static_cast<size_t>(part * outputs()) + index];
    }
    if (bias) sum += static_cast<float>(offsets[index % channels]);
    write(at, to.type, sum);
    values[index % channels] += static_cast<double>(sum);
    squares[index % channels] += static_cast<double>(sum) * static_cast<double>(sum);
  });
  const auto put = [&](const CudnnTensor& row, const std::vector<double>& all) {
    for_each_element(row, static_cast<std::byte*>(places(row)), [&](std::byte* at, size_t index) {
      write(at, row.type, static_cast<float>(all[index]));
    });
  };
  if (sums) put(*sums, values);
  if (square_sums) put(*square_sums, squares);
}

}  // namespace lockstep::emulation
