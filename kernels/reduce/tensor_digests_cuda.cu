// First one block per chunk of 64 KiB, of which a thread takes every 256th pack of 16 bytes; then
// one block per tensor sums its chunks. Traffic: each byte is read once; 8 bytes per chunk are
// written and read. Bound: DRAM.
#include "kernels/reduce/tensor_digests.h"
#include "kernels/support/cuda/multi_tensor.cuh"
#include "kernels/support/cuda/reduce.cuh"

namespace lockstep::kernels::cuda {
namespace {

constexpr int kDigestThreads = kMultiTensorThreads;
constexpr int kDigestChunk = 65536;  // in bytes, like all sizes here
constexpr int kDigestWord = 8;
constexpr int kDigestPack = 2 * kDigestWord;

struct DigestEntry {
  const uint8_t* bytes;
  uint64_t* chunk_sums;
  uint64_t* digest;
};
using DigestTable = TensorTable<DigestEntry>;

__device__ __forceinline__ uint64_t term_at(int64_t byte, uint64_t word) {
  return digest_term(word, static_cast<uint64_t>(byte / kDigestWord + 1));
}

__device__ uint64_t digest_of_thread(const uint8_t* bytes, const Chunk& chunk) {
  const auto thread = static_cast<int>(threadIdx.x);
  uint64_t sum = 0;
  for (int64_t i = chunk.begin + thread * kDigestPack; i < chunk.packed_end;
       i += kDigestThreads * kDigestPack) {
    const Pack<uint64_t, 2> words = load_pack<2>(reinterpret_cast<const uint64_t*>(bytes + i));
    sum += term_at(i, words[0]) + term_at(i + kDigestWord, words[1]);
  }
  for (int64_t i = chunk.packed_end + thread * kDigestWord; i < chunk.end;
       i += kDigestThreads * kDigestWord) {
    uint64_t word = 0;
    for (int k = 0; k < kDigestWord && i + k < chunk.end; ++k)
      word |= uint64_t{bytes[i + k]} << 8 * k;
    sum += term_at(i, word);
  }
  return sum;
}

__global__ void __launch_bounds__(kDigestThreads)
    digest_chunks_kernel(const __grid_constant__ DigestTable table) {
  __shared__ uint64_t scratch[kDigestThreads / 32];
  const Chunk chunk = table.chunk_of(static_cast<int>(blockIdx.x), kDigestChunk, kDigestPack);
  const DigestEntry entry = table.entries[chunk.tensor];
  const uint64_t sum =
      block_tree_sum<kDigestThreads>(digest_of_thread(entry.bytes, chunk), scratch);
  if (threadIdx.x == 0) entry.chunk_sums[chunk.begin / kDigestChunk] = sum;
}

__global__ void __launch_bounds__(kDigestThreads)
    digest_tensors_kernel(const __grid_constant__ DigestTable table) {
  __shared__ uint64_t scratch[kDigestThreads / 32];
  const auto at = static_cast<int>(blockIdx.x);
  const DigestEntry entry = table.entries[at];
  uint64_t sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < table.blocks_of(at); i += kDigestThreads)
    sum += entry.chunk_sums[i];
  sum = block_tree_sum<kDigestThreads>(sum, scratch);
  if (threadIdx.x == 0)
    *entry.digest = sum + digest_term(static_cast<uint64_t>(table.sizes[at]), 0);
}

}  // namespace

void tensor_digests(Stream& stream, std::span<const Tensor> tensors, Tensor& digests) {
  int64_t chunks = 0;
  const auto size_of_bytes = [](const Tensor& t) { return static_cast<int64_t>(t.nbytes()); };
  for (const Tensor& tensor : tensors) chunks += tensor_chunks(size_of_bytes(tensor), kDigestChunk);
  const Workspace memory = stream.workspace(static_cast<size_t>(chunks) * sizeof(uint64_t), 0);
  auto* chunk_sums = reinterpret_cast<uint64_t*>(memory.shared);
  auto* digest = reinterpret_cast<uint64_t*>(digests.data<int64_t>());
  const auto row_of = [&](const Tensor& tensor) {
    const DigestEntry entry = {.bytes = reinterpret_cast<const uint8_t*>(tensor.bytes()),
                               .chunk_sums = chunk_sums,
                               .digest = digest++};
    chunk_sums += tensor_chunks(size_of_bytes(tensor), kDigestChunk);
    return TableRow<DigestEntry>{entry, size_of_bytes(tensor), aligned({entry.bytes})};
  };
  for_tables<DigestEntry>(tensors, kDigestChunk, row_of, [&](const DigestTable& table) {
    using lockstep::cuda::launch;
    const auto in_table = static_cast<unsigned>(table.count);
    launch(stream, "tensor_digests", {table.blocks(), kDigestThreads}, digest_chunks_kernel, table);
    launch(stream, "tensor_digests", {in_table, kDigestThreads}, digest_tensors_kernel, table);
  });
}

}  // namespace lockstep::kernels::cuda
