// Plain matrix product in shared-memory tiles of 16 x 16: the baseline for other implementations,
// which runs without cuBLASLt. One thread per value of the product, one block per tile of it; the
// partial sum of each tile of the inner dimension is added as a whole. Traffic from DRAM or caches:
// each operand once per 16 rows or columns of the other. Bound: shared memory, two loads per
// multiplication.
#include "kernels/support/cuda/column_sum.cuh"
#include "kernels/linear/linear.h"

namespace lockstep::kernels::cuda {
namespace {

using lockstep::cuda::blocks_for;
using lockstep::cuda::launch;

constexpr int kSide = 16;
using Tile = float[kSide][kSide + 1];  // one more column avoids bank conflicts

// rows x depth values.
template <class T>
struct Matrix {
  const T* values;
  int64_t rows, depth, row_step, depth_step;
};

// Lanes follow the order of memory, for coalesced loads. Values outside of the matrix are 0.
template <class T>
__device__ __forceinline__ void load_tile(const Matrix<T>& matrix,
                                          int64_t first_row,
                                          int64_t first_depth,
                                          Tile& tile) {
  const bool along_depth = matrix.depth_step == 1;
  const unsigned i = along_depth ? threadIdx.y : threadIdx.x;
  const unsigned j = along_depth ? threadIdx.x : threadIdx.y;
  const int64_t row = first_row + i;
  const int64_t depth = first_depth + j;
  const bool inside = row < matrix.rows && depth < matrix.depth;
  tile[i][j] =
      inside ? to_float(matrix.values[row * matrix.row_step + depth * matrix.depth_step]) : 0;
}

// A value of a product: its row, its column and itself.
struct Cell {
  int64_t i, j;
  float sum;
};

// The value of a b^T at this thread's row of a (threadIdx.y) and of b (threadIdx.x).
template <class T>
__device__ __forceinline__ Cell product_cell(const Matrix<T>& a, const Matrix<T>& b) {
  __shared__ Tile left, right;
  const int64_t first_row = int64_t{blockIdx.x} * kSide;
  const int64_t first_column = int64_t{blockIdx.y} * kSide;
  float sum = 0;
  for (int64_t first = 0; first < a.depth; first += kSide) {
    load_tile(a, first_row, first, left);
    load_tile(b, first_column, first, right);
    __syncthreads();
    float part = 0;
#pragma unroll
    for (int d = 0; d < kSide; ++d)
      part = __fmaf_rn(left[threadIdx.y][d], right[threadIdx.x][d], part);
    sum += part;
    __syncthreads();
  }
  return {first_row + threadIdx.y, first_column + threadIdx.x, sum};
}

// out = a b^T + bias, row-major; bias may be null.
template <class T>
__global__ void __launch_bounds__(kSide* kSide)
    product_kernel(const Matrix<T> a, const Matrix<T> b, const float* bias, T* out) {
  const Cell cell = product_cell(a, b);
  if (cell.i >= a.rows || cell.j >= b.rows) return;
  const float value = bias == nullptr ? cell.sum : cell.sum + bias[cell.j];
  out[cell.i * b.rows + cell.j] = from_float<T>(value);
}

// The same for each shard, blockIdx.z. The depth is the shard's images; a and b belong to the whole
// batch.
template <class T>
__global__ void __launch_bounds__(kSide* kSide) shard_product_kernel(
    const __grid_constant__ ShardTable shards, Matrix<T> a, Matrix<T> b, float* out) {
  const int64_t first = shards.begin[blockIdx.z];
  a.values += first * a.depth_step;
  b.values += first * b.depth_step;
  a.depth = b.depth = shards.begin[blockIdx.z + 1] - first;
  const Cell cell = product_cell(a, b);
  if (cell.i >= a.rows || cell.j >= b.rows) return;
  out[(blockIdx.z * a.rows + cell.i) * b.rows + cell.j] = cell.sum;
}

// A row-major tensor as a matrix, and its transpose.
template <class T>
Matrix<T> matrix(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  return {elements<T>(tensor), shape[0], shape[1], shape[1], 1};
}
template <class T>
Matrix<T> transposed(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  return {elements<T>(tensor), shape[1], shape[0], 1, shape[1]};
}

dim3 grid_for(int64_t rows, int64_t columns, int64_t shards = 1) {
  return {blocks_for(rows, kSide), blocks_for(columns, kSide), static_cast<unsigned>(shards)};
}

}  // namespace

void linear_forward(Stream& stream,
                    const Shards& /*shards*/,
                    const Tensor& in,
                    const Tensor& weight,
                    const Tensor& bias,
                    Tensor& out) {
  with_float_type(in.dtype(), [&]<class T>() {
    launch(stream,
           "linear_forward",
           {grid_for(out.shape()[0], out.shape()[1]), dim3(kSide, kSide)},
           product_kernel<T>,
           matrix<T>(in),
           matrix<T>(weight),
           elements<float>(bias),
           elements<T>(out));
  });
}

void linear_backward_data(Stream& stream,
                          const Shards& /*shards*/,
                          const Tensor& grad_out,
                          const Tensor& weight,
                          Tensor& grad_in) {
  with_float_type(grad_out.dtype(), [&]<class T>() {
    launch(stream,
           "linear_backward_data",
           {grid_for(grad_in.shape()[0], grad_in.shape()[1]), dim3(kSide, kSide)},
           product_kernel<T>,
           matrix<T>(grad_out),
           transposed<T>(weight),
           static_cast<const float*>(nullptr),
           elements<T>(grad_in));
  });
}

void linear_backward_weight(Stream& stream,
                            const Shards& shards,
                            const Tensor& in,
                            const Tensor& grad_out,
                            Tensor& grad_weight,
                            Tensor& grad_bias) {
  const int64_t outputs = grad_out.shape()[1];
  with_float_type(in.dtype(), [&]<class T>() {
    launch(stream,
           "linear_backward_weight",
           {grid_for(outputs, in.shape()[1], shards.local()), dim3(kSide, kSide)},
           shard_product_kernel<T>,
           shard_table(shards),
           transposed<T>(grad_out),
           transposed<T>(in),
           elements<float>(grad_weight));
    if (!grad_bias.defined()) return;
    sum_columns(stream,
                "linear_backward_weight",
                shards,
                ImageRows<T>{elements<T>(grad_out), 1, outputs},
                elements<float>(grad_bias));
  });
}

}  // namespace lockstep::kernels::cuda
