// NCCL gives its work to a stream from a thread of its own, and a graph records it all the same.
#include <gtest/gtest.h>

#include "comm/nccl/connect.h"
#include "comm/single.h"
#include "core/cuda/device.h"
#include "core/cuda/error.h"
#include "core/cuda/graph.h"
#include "core/transfer.h"
#include "tests/emulation/runtime/fake_runtime.h"

namespace lockstep::comm::nccl::nccl_thread_test {
namespace {

using emulation::runtime_counters;

// One rank, whose exchange is NCCL's own all-reduce: the sum of its values alone.
class NcclThread : public ::testing::Test {
 protected:
  NcclThread() {
    emulation::reset_runtime();
    emulation::set_stream_order(emulation::StreamOrder::kLazy);
    compute_.emplace(Device::kCuda);
    make_ = connect(alone_, std::chrono::milliseconds(2000));
    buckets_[0].values = Tensor::zeros({4}, Dtype::kF32, Device::kCuda);
    exchange_ = make_(alone_, *compute_, buckets_);
  }
  ~NcclThread() override {
    exchange_.reset();
    make_ = {};
    compute_.reset();
    emulation::reset_runtime();
  }

  void sum() {
    exchange_->start({.values = buckets_[0].values, .algorithm = algorithm_, .label = "a bucket"})
        ->wait();
  }

  SingleCommunicator alone_;
  std::optional<Stream> compute_;
  MakeDeviceExchange make_;
  std::vector<Bucket> buckets_ = std::vector<Bucket>(1);
  std::unique_ptr<DeviceExchange> exchange_;
  Algorithm algorithm_ = Algorithm::kLibrary;
};

TEST_F(NcclThread, AGraphRecordsWhatAnotherThreadLaunches) {
  sum();
  EXPECT_EQ(runtime_counters.nccl_launches_elsewhere, 1);
  {
    const cuda::Graph graph = cuda::Graph::record(compute_->cuda(), [&] { sum(); });
    EXPECT_EQ(runtime_counters.nccl_launches_elsewhere, 2);
    runtime_counters = {};
    graph.launch(compute_->cuda());
    compute_->synchronize();
  }
  EXPECT_EQ(runtime_counters.graph_nodes_at, (std::map<int, int64_t>{{-5, 1}}));
}

// The mode that core/cuda/graph.cpp must not take: NCCL's thread does what other threads may do.
TEST_F(NcclThread, ACaptureThatConcernsAllThreadsBreaksNccl) {
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(compute_->cuda(), cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_THROW(sum(), CommError);
  EXPECT_NE(cudaStreamEndCapture(compute_->cuda(), &graph), cudaSuccess);
}

class ExchangePriority : public NcclThread {};

TEST_F(ExchangePriority, TheExchangesPriorityOutlivesTheRecording) {
  algorithm_ = Algorithm::kTree;
  const cuda::Graph graph = cuda::Graph::record(compute_->cuda(), [&] {
    (void)cudaMemsetAsync(buckets_[0].values.bytes(), 0, 4, compute_->cuda());
    sum();
  });
  runtime_counters = {};
  graph.launch(compute_->cuda());
  compute_->synchronize();
  EXPECT_EQ(runtime_counters.graph_nodes_at, (std::map<int, int64_t>{{0, 1}, {-5, 1}}));
}

}  // namespace
}  // namespace lockstep::comm::nccl::nccl_thread_test
