// What the fake runtime promises of memory and events between processes.
#include <cstring>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cuda/ipc.h"
#include "tests/cuda_runtime/runtime_test.h"

namespace lockstep::fake_interprocess_test {
namespace {

using namespace testing;

constexpr int64_t kCount = 1000;

// What two processes tell each other.
struct Board {
  cuda::MemoryHandle memory;
  cuda::Handle event;
  std::atomic<int> step;

  void go_to(int next) { step = next; }
  void wait_for(int at) const {
    while (step < at) usleep(100);
  }
};

// One process as long as the other lives; each makes its own calls to the device from the start.
class TwoProcesses : public RuntimeTest {
 protected:
  TwoProcesses()
      : board_(*static_cast<Board*>(mmap(
            nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~TwoProcesses() override { munmap(&board_, sizeof(Board)); }

  // `other` says whether all was as it should be.
  template <class Own, class Other>
  void run(Own&& own, Other&& other) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(other() ? 0 : 1);
    }
    own();
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }

  static bool all_are(const float* values, float want) {
    std::vector<float> found(kCount);
    cudaMemcpy(found.data(), values, kCount * sizeof(float), cudaMemcpyDefault);
    return std::ranges::all_of(found, [&](float value) { return value == want; });
  }

  Board& board_;
};

TEST_F(TwoProcesses, SeeOneMemory) {
  run(
      [&] {
        Stream stream(Device::kCuda);
        Tensor all = device_floats(2 * kCount);
        Tensor half = all.slice(kCount, kCount);
        fill(stream, all, 1);
        stream.synchronize();
        board_.memory = cuda::export_memory(half.bytes());
        EXPECT_EQ(board_.memory.offset, kCount * sizeof(float));
        EXPECT_EQ(cuda::export_memory(all.bytes()).allocation, board_.memory.allocation);
        EXPECT_TRUE(all_are(all.data<float>(), 1));  // what was there stays
        EXPECT_THROW(cuda::import_memory(board_.memory), EnvironmentError);
        board_.go_to(1);
        board_.wait_for(2);
        EXPECT_TRUE(all_are(half.data<float>(), 2));
        EXPECT_TRUE(all_are(all.data<float>(), 1));
      },
      [&] {
        board_.wait_for(1);
        Stream stream(Device::kCuda);
        const size_t mine = emulation::device_bytes_in_use();
        bool right = true;
        {
          const std::shared_ptr<std::byte> seen = cuda::import_memory(board_.memory);
          right = cuda::import_memory(board_.memory) == seen;  // one mapping, opened twice
          Tensor half = Tensor::wrap(seen, {kCount}, Dtype::kF32, Device::kCuda);
          right = right && all_are(half.data<float>(), 1);
          right = right && emulation::device_bytes_in_use() == mine;
          right = right && cudaFree(seen.get()) == cudaErrorInvalidValue;
          fill(stream, half, 2);
          stream.synchronize();
        }
        right = right && cudaIpcCloseMemHandle(nullptr) == cudaErrorInvalidValue;
        board_.go_to(2);
        return right;
      });
}

TEST_F(TwoProcesses, MemoryThatIsFreedHasNoHandle) {
  float* memory = nullptr;
  run(
      [&] {
        cudaMalloc(&memory, kCount * sizeof(float));
        board_.memory = cuda::export_memory(reinterpret_cast<const std::byte*>(memory));
        cudaFree(memory);
        board_.go_to(1);
        board_.wait_for(2);
      },
      [&] {
        board_.wait_for(1);
        bool refused = false;
        try {
          cuda::import_memory(board_.memory);
        } catch (const EnvironmentError&) {
          refused = true;
        }
        board_.go_to(2);
        return refused;
      });
}

// Queues here run as late as they may, and the process that recorded never waits for its own.
TEST_F(TwoProcesses, AWaitIsForWhatWasRecordedByThen) {
  run(
      [&] {
        Stream stream(Device::kCuda);
        Tensor values = device_floats(kCount);
        fill(stream, values, 1);
        stream.synchronize();
        cuda::InterprocessEvent event;
        board_.memory = cuda::export_memory(values.bytes());
        board_.event = event.handle();
        board_.go_to(1);
        board_.wait_for(2);
        fill(stream, values, 2);
        event.record(stream.cuda());
        fill(stream, values, 3);
        board_.go_to(3);
        board_.wait_for(4);
      },
      [&] {
        board_.wait_for(1);
        Stream stream(Device::kCuda);
        const std::shared_ptr<std::byte> seen = cuda::import_memory(board_.memory);
        const cuda::InterprocessEvent event(board_.event);
        Tensor theirs = Tensor::wrap(seen, {kCount}, Dtype::kF32, Device::kCuda);
        Tensor before = device_floats(kCount), after = device_floats(kCount);
        event.make_wait(stream.cuda());  // for nothing
        transfer(stream, theirs, before);
        stream.synchronize();
        board_.go_to(2);
        board_.wait_for(3);
        event.make_wait(stream.cuda());
        transfer(stream, theirs, after);
        stream.synchronize();
        const bool right =
            event.done() && all_are(before.data<float>(), 1) && all_are(after.data<float>(), 2);
        board_.go_to(4);
        return right;
      });
}

class Interprocess : public RuntimeTest {};

TEST_F(Interprocess, RefusesWhatCudaRefuses) {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
  cudaIpcEventHandle_t handle;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaIpcGetEventHandle(&handle, event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  float on_host = 0;
  cudaIpcMemHandle_t memory;
  EXPECT_EQ(cudaIpcGetMemHandle(&memory, &on_host), cudaErrorInvalidValue);
  EXPECT_THROW(cuda::export_memory(reinterpret_cast<const std::byte*>(&on_host)), EnvironmentError);
}

TEST_F(Interprocess, DevicesArePeersOfOthers) {
  reset_runtime({.devices = {{}, {}}});
  int can = -1;
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 1, 1), cudaSuccess);
  EXPECT_EQ(can, 0);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 2), cudaErrorInvalidDevice);
}

}  // namespace
}  // namespace lockstep::fake_interprocess_test
