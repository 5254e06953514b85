#include "core/cuda/graph.h"

#include <gmock/gmock.h>

#include "core/cuda/error.h"
#include "core/cuda/memory.h"
#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::graph_test {
namespace {

using namespace testing;

Tensor device_floats(int64_t count) {
  return Tensor::empty({count}, Dtype::kF32, Device::kCuda);
}

class CudaGraph : public RuntimeTest {
 protected:
  void set(const Tensor& tensor, int byte) {
    Tensor target = tensor;
    ASSERT_EQ(cudaMemsetAsync(target.bytes(), byte, target.nbytes(), stream_.cuda()), cudaSuccess);
  }
  uint8_t first_byte(const Tensor& tensor) {
    return static_cast<uint8_t>(*to_cpu(stream_, tensor).bytes());
  }

  Stream stream_{Device::kCuda};
};

TEST_F(CudaGraph, RunsWhatWasRecordedAtEachLaunchAndNotBefore) {
  const Tensor tensor = device_floats(2);
  set(tensor, 1);
  const cuda::Graph graph = cuda::Graph::record(stream_.cuda(), [&] { set(tensor, 2); });
  EXPECT_TRUE(graph);
  EXPECT_EQ(first_byte(tensor), 1);
  for (int i = 0; i < 2; ++i) {
    set(tensor, 3);
    graph.launch(stream_.cuda());
    EXPECT_EQ(first_byte(tensor), 2);
  }
}

TEST_F(CudaGraph, WaitingCannotBeRecorded) {
  try {
    (void)cuda::Graph::record(stream_.cuda(), [&] { stream_.synchronize(); });
    FAIL() << "no error";
  } catch (const cuda::CudaError& error) {
    EXPECT_EQ(error.status(), cudaErrorStreamCaptureUnsupported);
  }
  const Tensor tensor = device_floats(1);  // the stream records no more
  set(tensor, 4);
  EXPECT_EQ(first_byte(tensor), 4);
}

TEST_F(CudaGraph, MemoryOfAPoolIsNobodyElses) {
  const cuda::MemoryPool pool;
  const std::byte* place = nullptr;
  {
    const cuda::MemoryPool::Use use(pool);
    place = device_floats(100).bytes();
  }
  EXPECT_NE(device_floats(100).bytes(), place);
  const cuda::MemoryPool::Use use(pool);
  EXPECT_EQ(device_floats(100).bytes(), place);
}

TEST_F(CudaGraph, ATensorOutlivesItsPool) {
  Tensor tensor;
  {
    const cuda::MemoryPool pool;
    const cuda::MemoryPool::Use use(pool);
    tensor = device_floats(1);
  }
  set(tensor, 5);
  EXPECT_EQ(first_byte(tensor), 5);
  const size_t held = emulation::device_bytes_in_use();
  tensor = Tensor();
  EXPECT_LT(emulation::device_bytes_in_use(), held);
}

}  // namespace
}  // namespace lockstep::graph_test
