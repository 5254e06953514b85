// What only real MPI ranks can show. Started by mpirun: mpi_ranks [SCENARIO STALL_ABORT_SECONDS];
// without arguments it runs the tests below on every rank.
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "comm/connect.h"
#include "comm/die.h"
#include "comm/mpi_communicator.h"
#include "comm/thread_communicator.h"
#include "tests/support/collectives.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

constexpr size_t kPieceBytes =
    1000;  // so that messages are cut, and not at element boundaries only

Communicator* world = nullptr;

TEST(MpiRanks, CollectivesMatchClosedForms) {
  testing::check_collectives(*world);
}

TEST(MpiRanks, SameBitsAsThreads) {
  constexpr int64_t kCount = 100003;
  std::vector<float> got = testing::cancelling_values(world->rank(), kCount);
  world->all_reduce_sum(std::span(got));
  spawn_ranks(world->size(), [&](Communicator& threads) {
    std::vector<float> want = testing::cancelling_values(threads.rank(), kCount);
    threads.all_reduce_sum(std::span(want));
    EXPECT_EQ(got, want) << "rank " << world->rank();
  });
}

TEST(MpiRanks, TagsSurviveManyOperations) {
  for (int64_t i = 0; i < 5000; ++i) {
    int64_t sum = i;
    world->all_reduce_sum(std::span(&sum, 1));
    ASSERT_EQ(sum, i * world->size());
  }
}

void reduce(Communicator& peers, size_t count) {
  std::vector<float> values(count, 1);
  peers.all_reduce_sum(std::span(values));
}

const std::map<std::string, std::function<void(Communicator&)>> scenarios = {
    {"clean", [](Communicator& peers) { peers.barrier(); }},
    {"stopped",
     [](Communicator& peers) {
       reduce(peers, 10);
       if (peers.rank() == 1) std::raise(SIGSTOP);
       reduce(peers, 10);
     }},
    {"absent",
     [](Communicator& peers) {
       if (peers.rank() == 1) std::this_thread::sleep_for(1h);
       peers.barrier();
     }},
    {"absent-at-end",
     [](Communicator& peers) {
       if (peers.rank() == 1) std::this_thread::sleep_for(1h);
     }},
    {"killed",
     [](Communicator& peers) {
       peers.barrier();
       if (peers.rank() == 1) std::raise(SIGKILL);
       reduce(peers, 1000);
     }},
    {"exits",
     [](Communicator& peers) {
       if (peers.rank() == 1) ::_exit(0);
       peers.barrier();
     }},
    {"throws",
     [](Communicator& peers) {
       if (peers.rank() == 1) throw DataError("bad image");
       peers.barrier();
     }},
    {"different-calls",
     [](Communicator& peers) {
       if (peers.rank() == 1) {
         peers.barrier();
       } else {
         reduce(peers, 10);
       }
     }},
    {"short-message",
     [](Communicator& peers) {
       std::vector<std::byte> bytes(peers.rank() == 1 ? 48 : 40);
       peers.broadcast(bytes, 0);
     }},
    {"different-sizes", [](Communicator& peers) { reduce(peers, peers.rank() == 1 ? 10 : 12); }},
};

int run_tests() {
  auto session = std::make_unique<MpiSession>(read_launch());
  MpiCommunicator peers(std::move(session), 30s, kPieceBytes);
  world = &peers;
  return RUN_ALL_TESTS();
}

int run_scenario(const std::string& name, std::chrono::seconds stall_abort) {
  try {
    const auto peers = connect(read_launch(), stall_abort);
    scenarios.at(name)(*peers);
    return 0;
  } catch (const Error& error) {
    std::fputs(format_error(error).c_str(), stderr);
    die(error.code());
  }
}

}  // namespace
}  // namespace lockstep::comm

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 3) return lockstep::comm::run_tests();
  return lockstep::comm::run_scenario(argv[1], std::chrono::seconds(std::stoi(argv[2])));
}
