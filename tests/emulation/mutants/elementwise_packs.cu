// Like the elementwise kernels: packs of 16 bytes in a grid-stride loop, then the remaining
// elements.
#include "kernels/support/cuda/pack.cuh"
#include "tests/emulation/mutants/mutant.h"

namespace lockstep::emulation::mutants {
namespace {

namespace packs = kernels::cuda;

enum class Bug {
  kNone,
  kTailDropped,
  kTailOverrun,
  kTailTwice,
  kMisaligned,
  kNarrowStride,
  kWideStride,
  kWrongBlockSize,
  kReadsNeighbor,
  kOnePackTooMany,
};

constexpr int kThreads = 64, kPack = 4;

template <Bug kBug>
__global__ void __launch_bounds__(kThreads) add_one(const float* in, float* out, int count) {
  constexpr int kBlock = kBug == Bug::kWrongBlockSize ? 2 * kThreads : kThreads;
  const int thread = static_cast<int>(blockIdx.x) * kBlock + static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(gridDim.x) * kBlock;
  int packed = count / kPack * kPack;
  if constexpr (kBug == Bug::kTailOverrun) packed = (count + kPack - 1) / kPack * kPack;
  if constexpr (kBug == Bug::kOnePackTooMany) packed += kPack;
  const int stride = kBug == Bug::kNarrowStride ? threads
                     : kBug == Bug::kWideStride ? threads * kPack * 2
                                                : threads * kPack;
  for (int i = thread * kPack; i < packed; i += stride) {
    packs::Pack<float, kPack> pack = packs::load_pack<kPack>(in + i);
    for (int k = 0; k < kPack; ++k) pack[k] += kBug == Bug::kReadsNeighbor ? out[i + kPack] : 1;
    packs::store_pack(out + i, pack);
  }
  if constexpr (kBug == Bug::kTailDropped) return;
  const int step = kBug == Bug::kTailTwice ? 1 : threads;
  for (int i = packed + thread; i < count; i += step) out[i] = in[i] + 1;
}

template <Bug kBug>
bool gives_right_result() {
  constexpr size_t kCount = 1203;
  std::vector<float> values(kCount + 1), want(kCount + 1);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
    want[i] = values[i] + (kBug == Bug::kMisaligned && i == 0 ? 0.0F : 1.0F);
  }
  const size_t skipped = kBug == Bug::kMisaligned ? 1 : 0;
  values.resize(kCount + skipped);
  want.resize(kCount + skipped);
  DeviceArray<float> in(values), out(values);
  cuda::launch(stream(),
               "add_one",
               {2, kThreads},
               add_one<kBug>,
               in.data() + skipped,
               out.data() + skipped,
               static_cast<int>(kCount));
  return out.download() == want;
}

const Family family("elementwise_packs",
                    {{"none", gives_right_result<Bug::kNone>},
                     {"tail dropped", gives_right_result<Bug::kTailDropped>},
                     {"tail overrun", gives_right_result<Bug::kTailOverrun>},
                     {"tail by two threads", gives_right_result<Bug::kTailTwice>},
                     {"misaligned packs", gives_right_result<Bug::kMisaligned>},
                     {"stride too narrow", gives_right_result<Bug::kNarrowStride>},
                     {"stride too wide", gives_right_result<Bug::kWideStride>},
                     {"wrong block size", gives_right_result<Bug::kWrongBlockSize>},
                     {"reads its neighbor's", gives_right_result<Bug::kReadsNeighbor>},
                     {"one pack too many", gives_right_result<Bug::kOnePackTooMany>}});

}  // namespace
}  // namespace lockstep::emulation::mutants
