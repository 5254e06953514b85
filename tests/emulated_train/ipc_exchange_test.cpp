// The exchange over the emulated machine's CUDA IPC: ranks are processes of this test.
#include <atomic>
#include <cstdlib>
#include <functional>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/ipc/exchange.h"
#include "comm/shared/process_ranks.h"
#include "comm/shared/shared_communicator.h"
#include "core/cuda/device.h"
#include "core/transfer.h"
#include "tests/emulated_train/rank_values.h"
#include "tests/emulation/runtime/fake_runtime.h"

namespace lockstep::comm::ipc::ipc_exchange_test {
namespace {

using lockstep::testing::is_tree_sum;
using lockstep::testing::rank_values;

constexpr auto kDeadline = std::chrono::milliseconds(1500);
constexpr int64_t kSizes[] = {1000, 131, 3};
constexpr int kWrongBits = 3;
constexpr int kRefused = 4;
constexpr int kUsesEndedEvents = 9;

struct Setting {
  emulation::StreamOrder order = emulation::StreamOrder::kLazy;
  uint64_t seed = 1;
  size_t devices = 1;
  const char* forgets = "";  // LOCKSTEP_EMULATION_FORGETS
  const char* fault = "";    // LOCKSTEP_EMULATION_IPC, on rank 1 alone
};

// Ranks that share memory without MPI.
std::unique_ptr<Communicator> meet(int rank, int ranks, std::atomic<int>& steps) {
  const auto all = [&](int step) {
    ++steps;
    while (steps < step * ranks) usleep(100);
  };
  SocketMesh mesh(
      "ipc-test-" + std::to_string(getppid()) + "-" + std::to_string(ranks), rank, ranks);
  all(1);
  mesh.connect();
  all(2);
  auto host = std::make_unique<ProcessHost>(std::move(mesh), true, kDeadline);
  return std::make_unique<SharedCommunicator>(std::move(host), kDeadline);
}

// The exit codes of the ranks, each in its own process; 128 and more for signals.
std::vector<int> exit_codes(int ranks,
                            const Setting& setting,
                            const std::function<int(Communicator&)>& body) {
  void* const memory = mmap(
      nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    setenv("LOCKSTEP_EMULATION_FORGETS", setting.forgets, 1);
    setenv("LOCKSTEP_EMULATION_IPC", rank == 1 ? setting.fault : "", 1);
    emulation::FakeMachine machine;
    machine.devices.resize(setting.devices);
    emulation::reset_runtime(machine);
    emulation::set_stream_order(setting.order, setting.seed);
    alarm(30);
    try {
      const auto peers = meet(rank, ranks, *static_cast<std::atomic<int>*>(memory));
      cuda::select_device(rank, ranks);
      _exit(body(*peers));
    } catch (const Error& error) {
      _exit(static_cast<int>(error.code()));
    }
  }
  std::vector<int> codes(processes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const size_t rank = (i + 2) % codes.size();  // the one that may have stopped comes last
    kill(processes[rank], SIGCONT);
    int status = 0;
    waitpid(processes[rank], &status, 0);
    codes[rank] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  munmap(memory, sizeof(std::atomic<int>));
  return codes;
}

// Calls between_steps(step) before each of four. An exit code.
int sum_over(Communicator& peers, const std::function<void(int)>& between_steps = {}) {
  Stream compute(Device::kCuda);
  std::vector<Bucket> buckets;
  for (const int64_t size : kSizes) {
    Bucket bucket;
    bucket.values = Tensor::zeros({size}, Dtype::kF32, Device::kCuda);
    bucket.label = "bucket " + std::to_string(buckets.size());
    buckets.push_back(bucket);
  }
  IpcExchange exchange(peers, compute, buckets, kDeadline);
  for (int step = 0; step < 4; ++step) {
    if (between_steps) between_steps(step);
    std::vector<std::unique_ptr<Work>> works;
    for (const Bucket& bucket : buckets) {
      const Tensor mine = rank_values(bucket.values.shape(), peers.rank(), step);
      Tensor values = bucket.values;
      transfer(compute, mine, values);
      works.push_back(exchange.start({.values = values, .label = bucket.label}));
      for (const auto& work : works) work->advance();
    }
    for (size_t b = 0; b < buckets.size(); ++b) {
      works[b]->wait();
      if (!is_tree_sum(to_cpu(compute, buckets[b].values), peers.size(), step)) return kWrongBits;
    }
  }
  return 0;
}

using Codes = std::vector<int>;

TEST(IpcExchange, SumsInTreeOrderInAnyOrderOfStreams) {
  using enum emulation::StreamOrder;
  const auto sum = [](Communicator& peers) {
    const int code = sum_over(peers);
    return emulation::runtime_counters.uses_of_ended_events == 0 ? code : kUsesEndedEvents;
  };
  for (const int ranks : {1, 2, 3, 4}) {
    for (const size_t devices : {1, 4}) {
      const Codes right(static_cast<size_t>(ranks), 0);
      EXPECT_EQ(exit_codes(ranks, {.order = kEager, .devices = devices}, sum), right);
      EXPECT_EQ(exit_codes(ranks, {.order = kLazy, .devices = devices}, sum), right);
      for (const uint64_t seed : {1, 2, 3}) {
        EXPECT_EQ(exit_codes(ranks, {.order = kRandom, .seed = seed, .devices = devices}, sum),
                  right)
            << ranks << " ranks, seed " << seed;
      }
    }
  }
}

TEST(IpcExchange, AForgottenWaitShowsInSomeOrder) {
  const auto shows = [](const char* forgets) {
    for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
      const Setting setting = {
          .order = emulation::StreamOrder::kRandom, .seed = seed, .forgets = forgets};
      const Codes codes =
          exit_codes(2, setting, [](Communicator& peers) { return sum_over(peers); });
      if (codes != Codes{0, 0}) return true;
    }
    return false;
  };
  EXPECT_FALSE(shows("nothing"));
  EXPECT_TRUE(shows("to-wait"));        // slices are summed before their values are there
  EXPECT_TRUE(shows("to-be-awaited"));  // sums are read before they are there
}

// Overlap: the sum is on its way before anybody waits for it.
TEST(IpcExchange, AdvanceGivesTheSumToTheDevice) {
  const Codes codes = exit_codes(2, {}, [](Communicator& peers) {
    Stream compute(Device::kCuda);
    Bucket bucket;
    bucket.values = Tensor::zeros({1000}, Dtype::kF32, Device::kCuda);
    IpcExchange exchange(peers, compute, std::span(&bucket, 1), kDeadline);
    const auto work = exchange.start({.values = bucket.values});
    const int64_t before = emulation::runtime_counters.launches;
    bool joined = false;
    while (emulation::runtime_counters.launches == before) joined = joined || work->advance();
    work->wait();
    const bool once = emulation::runtime_counters.launches == before + 1;
    return !joined && once && work->advance() ? 0 : 1;
  });
  EXPECT_EQ(codes, (Codes{0, 0}));
}

TEST(IpcExchange, ALostRankEndsTheOthers) {
  const auto codes_after = [](int signal) {
    return exit_codes(3, {}, [&](Communicator& peers) {
      return sum_over(peers, [&](int step) {
        if (peers.rank() == 1 && step == 2) raise(signal);
      });
    });
  };
  EXPECT_EQ(codes_after(SIGKILL), (Codes{75, 128 + SIGKILL, 75}));
  EXPECT_EQ(codes_after(SIGSTOP), (Codes{75, 75, 75}));  // it finds the others gone
}

TEST(IpcTrial, PassesWhereRanksReachEachOther) {
  const auto tried = [](Communicator& peers) {
    return why_unavailable(peers, kDeadline).empty() ? 0 : kRefused;
  };
  EXPECT_EQ(exit_codes(2, {.devices = 1}, tried), (Codes{0, 0}));
  EXPECT_EQ(exit_codes(3, {.devices = 2}, tried), (Codes{0, 0, 0}));
}

TEST(IpcTrial, IsRefusedOnAllRanksWhereOneCannot) {
  const auto refusal = [](size_t devices, const char* fault, const std::string& why) {
    return exit_codes(2, {.devices = devices, .fault = fault}, [&](Communicator& peers) {
      const std::string found = why_unavailable(peers, kDeadline);
      peers.barrier();  // the ranks go on together
      if (found.find(why) != std::string::npos) return kRefused;
      std::fprintf(stderr, "rank %d: %s\n", peers.rank(), found.c_str());
      return 0;
    });
  };
  const Codes all = {kRefused, kRefused};
  EXPECT_EQ(refusal(2,
                    "no-peers",
                    "rank 1: its kernels cannot reach the memory of rank 0's GPU: "
                    "GPU-00000000-0000-0000-0000-000000000001 is not visible to it or no peer"),
            all);
  EXPECT_EQ(
      refusal(1, "refused", "rank 1: [import_memory] CUDA: mapping of buffer object failed (205)"),
      all);
  EXPECT_EQ(refusal(1, "elsewhere", "a sum over CUDA IPC came out wrong"), all);
}

}  // namespace
}  // namespace lockstep::comm::ipc::ipc_exchange_test
