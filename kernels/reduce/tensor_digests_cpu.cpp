#include <cstring>

#include "kernels/reduce/tensor_digests.h"
#include "kernels/support/cpu/cpu_loops.h"

namespace lockstep::kernels::LS_CPU {
namespace {

constexpr int64_t kWordBytes = 8;

uint64_t sum_of_words(const std::byte* bytes, int64_t begin, int64_t end) {
  uint64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i * kWordBytes, kWordBytes);
    sum += digest_term(word, static_cast<uint64_t>(i) + 1);
  }
  return sum;
}

}  // namespace

void tensor_digests(Stream& stream, std::span<const Tensor> tensors, Tensor& digests) {
  auto* to = reinterpret_cast<uint64_t*>(digests.data<int64_t>());
  for (const Tensor& tensor : tensors) {
    const std::byte* bytes = tensor.bytes();
    const auto size = static_cast<int64_t>(tensor.nbytes());
    const int64_t words = size / kWordBytes;
    uint64_t digest = digest_term(static_cast<uint64_t>(size), 0);
    if (const int64_t rest = size % kWordBytes; rest > 0) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + words * kWordBytes, static_cast<size_t>(rest));
      digest += digest_term(word, static_cast<uint64_t>(words) + 1);
    }
    for_ranges(stream, words, [&](int64_t begin, int64_t end) {
      __atomic_fetch_add(&digest, sum_of_words(bytes, begin, end), __ATOMIC_RELAXED);
    });
    *to++ = digest;
  }
}

}  // namespace lockstep::kernels::LS_CPU
