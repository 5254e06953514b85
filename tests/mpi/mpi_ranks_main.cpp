// Tests that need ranks in separate processes. Started by mpirun or start_ranks.sh:
//   mpi_ranks TRANSPORT                                the tests below, on every rank
//   mpi_ranks TRANSPORT SCENARIO STALL_ABORT_SECONDS   how a run ends
//   mpi_ranks TRANSPORT host                           in a program that has started MPI itself
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include "comm/connect.h"
#include "comm/die.h"
#include "comm/messages/mpi_communicator.h"
#include "comm/shared/thread_ranks.h"
#include "tests/support/all_reduces.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

constexpr size_t kPieceBytes =
    1000;  // so that messages are cut, and not only at element boundaries

Communicator* world = nullptr;

TEST(MpiRanks, CollectivesMatchClosedForms) {
  testing::check_collectives(*world);
}

TEST(MpiRanks, SameBitsAsThreads) {
  constexpr int64_t kCount = 100003;
  std::vector<float> got = testing::canceling_values(world->rank(), kCount);
  world->all_reduce_sum(std::span(got));
  spawn_ranks(world->size(), [&](Communicator& threads) {
    std::vector<float> want = testing::canceling_values(threads.rank(), kCount);
    threads.all_reduce_sum(std::span(want));
    EXPECT_EQ(got, want) << "rank " << world->rank();
  });
}

TEST(MpiRanks, AllReducesFollowTheDefinition) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kF16}) {
    for (const int64_t count : testing::collective_counts(world->size())) {
      const testing::ExpectedSum want(world->size(), count, dtype);
      for (const Algorithm algorithm : testing::kExchanges) {
        testing::check_all_reduce(*world, algorithm, want);
      }
    }
  }
}

TEST(MpiRanks, EveryAlgorithmSumsIntegersExactly) {
  for (const Algorithm algorithm : testing::kExchanges) {
    testing::check_sums_of_integers(*world, algorithm, Dtype::kF16);
  }
}

TEST(MpiRanks, WorksFinishInAnyOrder) {
  testing::check_works_in_flight(*world);
}

TEST(MpiRanks, MoveWhatTheScheduleSays) {
  testing::check_traffic(*world);
}

TEST(MpiRanks, TagsSurviveManyOperations) {
  for (int64_t i = 0; i < 5000; ++i) {
    int64_t sum = i;
    world->all_reduce_sum(std::span(&sum, 1));
    ASSERT_EQ(sum, i * world->size());
  }
}

// Ranks that share memory can also use MPI if they were started through it.
class MpiAllReduce : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!read_launch().needs_mpi()) GTEST_SKIP() << "these ranks have no MPI";
  }
};

TEST_F(MpiAllReduce, IsNearTheDefinitionAndTheSameOnAllRanks) {
  for (const int64_t count : testing::collective_counts(world->size())) {
    const testing::ExpectedSum want(world->size(), count, Dtype::kF32);
    testing::check_all_reduce(*world, Algorithm::kLibrary, want);
  }
}

TEST_F(MpiAllReduce, SumsIntegersExactly) {
  testing::check_sums_of_integers(*world, Algorithm::kLibrary, Dtype::kF32);
}

TEST_F(MpiAllReduce, SharesTheWireWithOtherSums) {
  std::vector<Tensor> values;
  std::vector<std::unique_ptr<Work>> works;
  for (const Algorithm algorithm : {Algorithm::kLibrary,
                                    Algorithm::kTree,
                                    Algorithm::kLibrary,
                                    Algorithm::kRing,
                                    Algorithm::kStar}) {
    values.push_back(testing::integers_of(world->rank(), 40009, Dtype::kF32));
    works.push_back(world->start_all_reduce({.values = values.back(), .algorithm = algorithm}));
  }
  if (world->rank() % 2 == 1) std::ranges::reverse(works);
  for (const auto& work : works) work->wait();
  for (const Tensor& sums : values) testing::expect_sum_of_integers(sums, world->size());
}

TEST_F(MpiAllReduce, RefusesHalfPrecision) {
  const Tensor values = Tensor::zeros({3}, Dtype::kF16);
  try {
    world->start_all_reduce({.values = values, .algorithm = Algorithm::kLibrary});
    FAIL() << "no error";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "MPI's own all-reduce sums f32 alone");
    EXPECT_EQ(error.why(), "the values are f16, for which MPI has no type");
    EXPECT_EQ(error.hint(), "exchange f32, or use the tree, the ring or the star");
    EXPECT_EQ(error.remedy(), Remedy::kAlgorithm);
  }
}

void reduce(Communicator& peers, size_t count) {
  std::vector<float> values(count, 1);
  peers.all_reduce_sum(std::span(values));
}

// Rank 1 never joins the sum.
void reduce_bucket_without_rank_1(Communicator& peers, Algorithm algorithm) {
  const Tensor values = peers.allocate({1000}, Dtype::kF32);
  if (peers.rank() == 1) std::this_thread::sleep_for(1h);
  peers
      .start_all_reduce(
          {.values = values, .algorithm = algorithm, .label = "bucket 2: fc.weight to fc.bias"})
      ->wait();
}

const std::map<std::string, std::function<void(Communicator&)>> scenarios = {
    {"clean", [](Communicator& peers) { peers.barrier(); }},
    {"two-hosts", [](Communicator& peers) { peers.barrier(); }},
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
    {"absent-in-bucket",
     [](Communicator& peers) { reduce_bucket_without_rank_1(peers, Algorithm::kTree); }},
    {"absent-in-library",
     [](Communicator& peers) { reduce_bucket_without_rank_1(peers, Algorithm::kLibrary); }},
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
    {"no-memory", [](Communicator& peers) { peers.allocate({int64_t{1} << 50}, Dtype::kF32); }},
    {"short-message",
     [](Communicator& peers) {
       std::vector<std::byte> bytes(peers.rank() == 1 ? 48 : 40);
       peers.broadcast(bytes, 0);
     }},
    {"different-sizes", [](Communicator& peers) { reduce(peers, peers.rank() == 1 ? 10 : 12); }},
};

int run_tests(Transport transport) {
  std::unique_ptr<Communicator> peers;
  if (transport == Transport::kMpi) {
    peers = std::make_unique<MpiCommunicator>(
        std::make_unique<MpiSession>(read_launch()), 30s, LostAtEnd(), kPieceBytes);
  } else {
    peers = connect(read_launch(), {.stall_abort = 30s, .transport = transport}).ranks;
  }
  world = peers.get();
  ::testing::GTEST_FLAG(filter) = "-HostProgram.*";
  return RUN_ALL_TESTS();
}

int run_scenario(Transport transport, const std::string& name, std::chrono::seconds stall_abort) {
  try {
    Launch launch = read_launch();
    if (name == "two-hosts" && launch.rank == 1) launch.local_size = 1;
    const Connection connection = connect(launch,
                                          {.stall_abort = stall_abort,
                                           .transport = transport,
                                           .lost_at_end = [](const Error& error) { die(error); }});
    std::printf(
        "transport %s %s\n", std::string(connection.transport).c_str(), connection.note.c_str());
    scenarios.at(name)(*connection.ranks);
    return 0;
  } catch (const Error& error) {
    die(error);
  }
}

bool has_ended() {
  int ended = 0;
  MPI_Finalized(&ended);
  return ended != 0;
}

void sum_ranks(Communicator& peers) {
  int64_t sum = peers.rank() + 1;
  peers.all_reduce_sum(std::span(&sum, 1));
  EXPECT_EQ(sum, peers.size() * (peers.size() + 1) / 2);
}

// The host program's own messages are in flight meanwhile, and only the program may finalize MPI.
TEST(HostProgram, KeepsItsMpi) {
  const ConnectOptions options = {.stall_abort = 30s, .transport = Transport::kMpi};
  const int rank = read_launch().rank;
  constexpr int kTag = 12;  // also the tag of this library's first sum
  int got = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 1) MPI_Irecv(&got, 1, MPI_INT, 0, kTag, MPI_COMM_WORLD, &request);
  for (int i = 0; i < 2; ++i) {  // twice in a row, each time with two connections
    const Connection first = connect(read_launch(), options);
    const Connection second = connect(read_launch(), options);
    sum_ranks(*first.ranks);
    sum_ranks(*second.ranks);
    sum_ranks(*first.ranks);
  }
  ASSERT_FALSE(has_ended());
  const int sent = 17;
  if (rank == 0) MPI_Send(&sent, 1, MPI_INT, 1, kTag, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(got, rank == 1 ? 17 : -1);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  EXPECT_EQ(handler, MPI_ERRORS_ARE_FATAL);
}

// Only one thread may make calls, and the program finalizes MPI too early: both give errors and no
// abort.
TEST(HostProgram, WrongCallsAreErrors) {
  const Connection job = connect(read_launch(), {.stall_abort = 30s, .transport = Transport::kMpi});
  std::thread([&] { EXPECT_THROW(job.ranks->barrier(), UsageError); }).join();
  sum_ranks(*job.ranks);
  MPI_Finalize();
  EXPECT_THROW(job.ranks->barrier(), UsageError);
  EXPECT_THROW(connect(read_launch(), {.transport = Transport::kMpi}), UsageError);
}

int run_host_program() {
  ::testing::GTEST_FLAG(filter) = "HostProgram.*";
  MPI_Init(nullptr, nullptr);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace lockstep::comm

int main(int argc, char** argv) {
  using lockstep::comm::Transport;
  ::testing::InitGoogleTest(&argc, argv);
  const std::map<std::string, Transport> transports = {{"auto", Transport::kAuto},
                                                       {"mpi", Transport::kMpi},
                                                       {"shm", Transport::kShm},
                                                       {"tcp", Transport::kTcp}};
  const Transport transport = transports.at(argc > 1 ? argv[1] : "auto");
  if (argc == 3) return lockstep::comm::run_host_program();
  if (argc < 4) return lockstep::comm::run_tests(transport);
  return lockstep::comm::run_scenario(transport, argv[2], std::chrono::seconds(std::stoi(argv[3])));
}
