// Like the optimizers: a table of tensors passed by value and divided into chunks, a flag that many
// threads set, and a learning rate in constant memory.
#include "tests/emulation/mutants/mutant.h"

namespace lockstep::emulation::mutants {
namespace {

enum class Bug {
  kNone,
  kWritesPastEnd,
  kChunksOverlap,
  kWrongTail,
  kUseAfterFree,
  kHostPointer,
  kUnwrittenMomentum,
  kPlainFlag,
  kWritesConstant,
  kTableIndexOutOfRange,
};

constexpr int kThreads = 64, kChunk = 128, kTensors = 3;

struct Table {
  float* values[kTensors];
  const float* grads[kTensors];
  float* momentum[kTensors];
  int count[kTensors];
};

__constant__ float learning_rate[1] = {0.5F};

// momentum = momentum / 2 + grad; value -= rate * momentum. blockIdx.y is the tensor, x the chunk.
template <Bug kBug>
__global__ void __launch_bounds__(kThreads)
    update(const __grid_constant__ Table table, int* found_negative) {
  const auto tensor =
      static_cast<int>(blockIdx.y) + (kBug == Bug::kTableIndexOutOfRange && blockIdx.y > 0 ? 1 : 0);
  const int count = table.count[tensor];
  const int begin = static_cast<int>(blockIdx.x) * kChunk;
  int end = min(begin + kChunk, count);
  if constexpr (kBug == Bug::kWritesPastEnd) end = min(begin + kChunk, count + 1);
  if constexpr (kBug == Bug::kChunksOverlap) end = min(begin + kChunk + 1, count);
  if constexpr (kBug == Bug::kWrongTail) end = end / 4 * 4;
  if constexpr (kBug == Bug::kWritesConstant) learning_rate[0] = 0.5F;
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += kThreads) {
    const float grad = table.grads[tensor][i];
    const float speed = table.momentum[tensor][i] / 2 + grad;
    table.momentum[tensor][i] = speed;
    table.values[tensor][i] -= learning_rate[0] * speed;
    if (grad < 0) {
      if constexpr (kBug == Bug::kPlainFlag) {
        *found_negative = 1;
      } else {
        atomicOr(found_negative, 1);
      }
    }
  }
}

template <Bug kBug>
bool gives_right_result() {
  constexpr int kCount[kTensors] = {300, 1, 131};
  std::vector<std::vector<float>> values, grads, speeds;
  std::vector<std::unique_ptr<DeviceArray<float>>> arrays;
  Table table{};
  for (size_t t = 0; t < kTensors; ++t) {
    const auto count = static_cast<size_t>(kCount[t]);
    const auto seed = static_cast<unsigned>(t);
    const auto upload = [&](std::vector<float>& host, unsigned salt) {
      host = small_numbers(count, 10 * seed + salt);
      arrays.push_back(std::make_unique<DeviceArray<float>>(host));
      return arrays.back()->data();
    };
    table.count[t] = kCount[t];
    table.values[t] = upload(values.emplace_back(), 1);
    table.grads[t] = upload(grads.emplace_back(), 2);
    table.momentum[t] = upload(speeds.emplace_back(), 3);
  }
  DeviceArray<float> unwritten(static_cast<size_t>(kCount[0]));
  if constexpr (kBug == Bug::kUnwrittenMomentum) table.momentum[0] = unwritten.data();
  if constexpr (kBug == Bug::kHostPointer) table.grads[2] = grads[2].data();
  if constexpr (kBug == Bug::kUseAfterFree) arrays[4]->free();
  DeviceArray<int> found_negative(std::vector<int>{0});
  cuda::launch(stream(),
               "update",
               {dim3(3, kTensors), kThreads},
               update<kBug>,
               table,
               found_negative.data());
  if (found_negative.download()[0] != 1) return false;
  for (size_t t = 0; t < kTensors; ++t) {
    const std::vector<float> got = arrays[3 * t]->download();
    for (size_t i = 0; i < got.size(); ++i) {
      if (!(got[i] == values[t][i] - 0.5F * (speeds[t][i] / 2 + grads[t][i]))) return false;
    }
  }
  return true;
}

const Family family("multi_tensor",
                    {{"none", gives_right_result<Bug::kNone>},
                     {"writes past the end", gives_right_result<Bug::kWritesPastEnd>},
                     {"chunks overlap", gives_right_result<Bug::kChunksOverlap>},
                     {"wrong tail", gives_right_result<Bug::kWrongTail>},
                     {"use after free", gives_right_result<Bug::kUseAfterFree>},
                     {"host pointer", gives_right_result<Bug::kHostPointer>},
                     {"momentum never written", gives_right_result<Bug::kUnwrittenMomentum>},
                     {"flag by plain stores", gives_right_result<Bug::kPlainFlag>},
                     {"writes constant memory", gives_right_result<Bug::kWritesConstant>},
                     {"table index out of range", gives_right_result<Bug::kTableIndexOutOfRange>}});

}  // namespace
}  // namespace lockstep::emulation::mutants
