// The exchange over the emulated machine's NCCL: ranks are processes of this test.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/nccl/connect.h"
#include "comm/nccl/ranks.h"
#include "comm/single.h"
#include "core/cuda/device.h"
#include "core/cuda/graph.h"
#include "core/transfer.h"
#include "kernels/elementwise/fill.h"
#include "tests/emulated_train/rank_values.h"
#include "tests/emulation/runtime/fake_runtime.h"
#include "tests/support/close.h"

namespace lockstep::comm::nccl::nccl_exchange_test {
namespace {

using lockstep::testing::is_ring_sum;
using lockstep::testing::is_tree_sum;
using lockstep::testing::rank_value;
using lockstep::testing::rank_values;
using lockstep::testing::same_bits;

constexpr int64_t kSizes[] = {1000, 131};
constexpr int64_t kRows = 7, kColumns = 5;  // of all ranks; each has some
constexpr int kWrongBits = 3;

// Enough of a communicator to hand round NCCL's id, and to know who has ended.
class Meeting : public SingleCommunicator {
 public:
  struct Board {
    std::atomic<bool> written;
    std::atomic<bool> ended[300];
    std::byte bytes[1024];
  };
  Meeting(int rank, int size, Board& board) : rank_(rank), size_(size), board_(board) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::vector<int> gone() override {
    std::vector<int> ranks;
    for (int rank = 0; rank < size_; ++rank) {
      if (board_.ended[rank]) ranks.push_back(rank);
    }
    return ranks;
  }
  void broadcast(std::span<std::byte> bytes, int) override {
    if (rank_ == 0) {
      std::memcpy(board_.bytes, bytes.data(), bytes.size());
      board_.written = true;
    }
    while (!board_.written) usleep(100);
    std::memcpy(bytes.data(), board_.bytes, bytes.size());
  }

 private:
  int rank_, size_;
  Board& board_;
};

// Rows [first, end) as they are in a step: row k is what rank k would have to sum.
Tensor rows_of_step(int64_t first, int64_t end, int step) {
  Tensor rows = Tensor::empty({end - first, kColumns}, Dtype::kF32);
  for (int64_t i = 0; i < rows.numel(); ++i) {
    rows.data<float>()[i] = rank_value(static_cast<int>(first + i / kColumns), i % kColumns, step);
  }
  return rows;
}

struct Setting {
  emulation::StreamOrder order = emulation::StreamOrder::kLazy;
  uint64_t seed = 1;
  Algorithm algorithm = Algorithm::kTree;
  bool records = true;
  int steps = 5;
  bool fails = false;        // rank 0 does
  bool ends = false;         // rank 1 does, before its fourth sum
  int launches = 0;          // queued after each sum
  const char* fault = "";    // LOCKSTEP_EMULATION_NCCL
  const char* forgets = "";  // LOCKSTEP_EMULATION_FORGETS
  std::chrono::milliseconds deadline{1000};
};

// Two steps as they are, then those of one graph if it `records`. An exit code.
int sum_on(Communicator& peers, const Setting& setting) {
  cuda::select_device(peers.rank(), peers.size());
  Stream compute(Device::kCuda);
  const MakeDeviceExchange make = connect(peers, setting.deadline);
  std::vector<Bucket> buckets(2);
  std::vector<Tensor> in, out, told, heard;
  for (size_t b = 0; b < 2; ++b) {
    buckets[b].values = Tensor::zeros({kSizes[b]}, Dtype::kF32, Device::kCuda);
    buckets[b].label = "bucket " + std::to_string(b);
    in.push_back(Tensor::zeros({kSizes[b]}, Dtype::kF32, Device::kCuda));
    for (std::vector<Tensor>* const more : {&out, &told, &heard})
      more->push_back(Tensor::zeros({kSizes[b]}, Dtype::kF32, Device::kCuda));
  }
  const int root = 1 % peers.size();
  std::vector<int64_t> first_rows;
  for (int rank = 0; rank <= peers.size(); ++rank)
    first_rows.push_back(rank * kRows / peers.size());
  const int64_t first = first_rows[static_cast<size_t>(peers.rank())];
  const int64_t end = first_rows[static_cast<size_t>(peers.rank()) + 1];
  const Tensor rows = Tensor::zeros({end - first, kColumns}, Dtype::kF32, Device::kCuda);
  Tensor sent = Tensor::zeros(rows.shape(), Dtype::kF32, Device::kCuda);
  Tensor all = Tensor::zeros({kRows, kColumns}, Dtype::kF32, Device::kCuda);
  Tensor gathered = Tensor::zeros(all.shape(), Dtype::kF32, Device::kCuda);
  const std::unique_ptr<DeviceExchange> exchange = make(peers, compute, buckets);
  const auto sum = [&] {
    std::vector<std::unique_ptr<Work>> works;
    for (size_t b = 0; b < 2; ++b) {
      transfer(compute, in[b], buckets[b].values);
      works.push_back(exchange->start({.values = buckets[b].values,
                                       .algorithm = setting.algorithm,
                                       .label = buckets[b].label}));
      if (b > 0) continue;
      transfer(compute, rows, sent);
      exchange->peers()->gather_rows(std::span(&sent, 1), first_rows, std::span(&all, 1));
      transfer(compute, all, gathered);
      for (size_t t = 0; t < 2; ++t) transfer(compute, in[t], told[t]);
      exchange->peers()->broadcast(told, root);
      for (size_t t = 0; t < 2; ++t) transfer(compute, told[t], heard[t]);
    }
    for (size_t b = 0; b < 2; ++b) {
      works[b]->wait();
      transfer(compute, buckets[b].values, out[b]);
    }
    for (int i = 0; i < setting.launches; ++i) kernels::fill(compute, 0, heard[0]);
  };
  cuda::Graph graph;
  for (int step = 0; step < setting.steps; ++step) {
    if (setting.ends && peers.rank() == 1 && step == 3) _exit(0);
    for (Tensor& values : in) {
      const Tensor mine = rank_values(values.shape(), peers.rank(), step);
      transfer(compute, mine, values);
    }
    Tensor to = rows;
    transfer(compute, rows_of_step(first, end, step), to);
    if (step < 2 || !setting.records) {
      sum();
    } else {
      if (!graph) graph = cuda::Graph::record(compute.cuda(), sum);
      graph.launch(compute.cuda());
    }
    const auto is_sum = setting.algorithm == Algorithm::kRing ? is_ring_sum : is_tree_sum;
    for (const Tensor& sums : out) {
      if (!is_sum(to_cpu(compute, sums), peers.size(), step)) return kWrongBits;
    }
    for (const Tensor& copy : heard) {
      const Tensor roots = rank_values(copy.shape(), root, step);
      if (!same_bits(to_cpu(compute, copy), roots)) return kWrongBits;
    }
    if (!same_bits(to_cpu(compute, gathered), rows_of_step(0, kRows, step))) return kWrongBits;
  }
  compute.synchronize();
  return 0;
}

// Rank 0 meets an error of its own when the others have not come yet.
int fail_in_a_sum(Communicator& peers) {
  cuda::select_device(peers.rank(), peers.size());
  Stream compute(Device::kCuda);
  const MakeDeviceExchange make = connect(peers, std::chrono::milliseconds(1000));
  std::vector<Bucket> buckets(1);
  buckets[0].values = Tensor::zeros({kSizes[0]}, Dtype::kF32, Device::kCuda);
  const std::unique_ptr<DeviceExchange> exchange = make(peers, compute, buckets);
  if (peers.rank() > 0) return 0;
  exchange->start({.values = buckets[0].values, .label = "bucket 0"})->wait();
  throw DataError("an error of this rank", "the test says so", "nothing");
}

// The largest exit code of the ranks, each in its own process.
int exit_code(int ranks, const Setting& setting) {
  void* const memory = mmap(
      nullptr, sizeof(Meeting::Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& board = *static_cast<Meeting::Board*>(memory);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    setenv("LOCKSTEP_EMULATION_NCCL", setting.fault, 1);
    setenv("LOCKSTEP_EMULATION_FORGETS", setting.forgets, 1);
    emulation::FakeMachine machine;
    machine.devices.resize(4);
    emulation::reset_runtime(machine);
    emulation::set_stream_order(setting.order, setting.seed);
    alarm(30);
    try {
      Meeting peers(rank, ranks, board);
      _exit(setting.fails ? fail_in_a_sum(peers) : sum_on(peers, setting));
    } catch (const Error& error) {
      _exit(static_cast<int>(error.code()));
    }
  }
  int largest = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    const auto ended = std::ranges::find(processes, wait(&status));
    if (setting.ends) board.ended[ended - processes.begin()] = true;
    largest = std::max(largest, WIFEXITED(status) ? WEXITSTATUS(status) : 128);
  }
  munmap(memory, sizeof(Meeting::Board));
  return largest;
}

// Beside the sums rows are gathered and tensors broadcast.
void expect_sums(Algorithm algorithm) {
  using enum emulation::StreamOrder;
  for (const int ranks : {1, 2, 3, 4}) {
    for (const bool records : {true, false}) {
      Setting setting = {.algorithm = algorithm, .records = records, .steps = records ? 5 : 3};
      for (const emulation::StreamOrder order : {kEager, kLazy}) {
        setting.order = order;
        EXPECT_EQ(exit_code(ranks, setting), 0) << ranks;
      }
      setting.order = kRandom;
      for (const uint64_t seed : {1, 2, 3}) {
        setting.seed = seed;
        EXPECT_EQ(exit_code(ranks, setting), 0) << ranks << " ranks, seed " << seed;
      }
    }
  }
}

TEST(NcclExchange, SumsInTreeOrderInAnyOrderOfStreams) {
  expect_sums(Algorithm::kTree);
}

// peer_sum takes 128 versions at once.
TEST(NcclExchange, SumsManyRanksInTreeOrder) {
  const Setting setting = {
      .records = false, .steps = 2, .deadline = std::chrono::milliseconds(20000)};
  EXPECT_EQ(exit_code(131, setting), 0);
}

TEST(NcclExchange, SumsInRingOrderInAnyOrderOfStreams) {
  expect_sums(Algorithm::kRing);
}

TEST(NcclExchange, AForgottenWaitShowsInSomeOrder) {
  const auto shows = [](const char* forgets) {
    for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
      if (exit_code(2,
                    {.order = emulation::StreamOrder::kRandom,
                     .seed = seed,
                     .records = false,
                     .forgets = forgets}) == kWrongBits)
        return true;
    }
    return false;
  };
  EXPECT_TRUE(shows("to-wait"));        // buckets leave before their values are there
  EXPECT_TRUE(shows("to-be-awaited"));  // sums are read before they are there
}

TEST(NcclExchange, ARankThatEndsIsNoticedBeforeTheDeadline) {
  for (const bool records : {true, false}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(
        exit_code(2, {.records = records, .ends = true, .deadline = std::chrono::seconds(20)}), 75);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << records;
  }
}

TEST(NcclExchange, FailuresEndInTheirExitCodes) {
  EXPECT_EQ(exit_code(2, {.fails = true}), static_cast<int>(ExitCode::kData));
  for (const char* fault : {"missing", "old-version", "lacks-a-function", "init-fails"}) {
    EXPECT_EQ(exit_code(2, {.fault = fault}), 5) << fault;
  }
  for (const char* fault : {"init-hangs", "hangs:5", "hangs:11", "async-error:5"}) {
    EXPECT_EQ(exit_code(2, {.fault = fault}), 75) << fault;
  }
}

TEST(NcclRanks, AFailureInAGroupEndsTheGroup) {
  emulation::reset_runtime();
  SingleCommunicator alone;
  Stream stream(Device::kCuda);
  Tensor sum = Tensor::zeros({131}, Dtype::kF32, Device::kCuda);
  setenv("LOCKSTEP_EMULATION_NCCL", "late-error:1", 1);
  {
    Ranks failing(alone, std::chrono::milliseconds(1000));
    failing.group("a sum", [&] { failing.all_reduce(sum, stream); });
    EXPECT_THROW(failing.group("another", [&] { failing.all_reduce(sum, stream); }), CommError);
  }
  unsetenv("LOCKSTEP_EMULATION_NCCL");
  Ranks others(alone, std::chrono::milliseconds(1000));
  others.group("a sum", [&] { others.all_reduce(sum, stream); });
}

// CUDA's queue of launches is finite, and a launch into a full one waits where nobody looks.
TEST(NcclExchange, AHungCollectiveIsNoticedByAHostThatOnlyLaunches) {
  EXPECT_EQ(exit_code(2, {.records = false, .launches = 3000, .fault = "hangs:5"}), 75);
}

// Of the emulation: a group's sums are of its tensors in the order of the calls.
TEST(EmulatedNccl, AGroupSumsEachOfItsTensors) {
  emulation::reset_runtime();
  SingleCommunicator alone;
  Ranks ranks(alone, std::chrono::milliseconds(1000));
  Stream stream(Device::kCuda);
  std::vector<Tensor> sums;
  for (int step = 0; step < 2; ++step) {
    sums.push_back(Tensor::zeros({131}, Dtype::kF32, Device::kCuda));
    transfer(stream, rank_values({131}, 0, step), sums.back());
  }
  ranks.group("two sums", [&] {
    for (Tensor& sum : sums) ranks.all_reduce(sum, stream);
  });
  for (int step = 0; step < 2; ++step) {
    const Tensor sum = to_cpu(stream, sums[static_cast<size_t>(step)]);
    EXPECT_TRUE(same_bits(sum, rank_values({131}, 0, step))) << step;
  }
}

}  // namespace
}  // namespace lockstep::comm::nccl::nccl_exchange_test
