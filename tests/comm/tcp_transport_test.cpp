// Tests messages over sockets: the same sums as over any transport, and peers that misbehave.
#include "comm/tcp/tcp_transport.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <sys/socket.h>

#include "comm/tcp/tcp_communicator.h"
#include "tests/comm/rank_errors.h"
#include "tests/support/all_reduces.h"
#include "tests/support/tcp_ranks.h"

namespace lockstep::comm::tcp::tcp_transport_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::spawn_tcp_ranks;

class TcpRanks : public ::testing::TestWithParam<int> {};

TEST_P(TcpRanks, EveryAlgorithmFollowsTheDefinition) {
  for (const Dtype dtype : {Dtype::kF32, Dtype::kF16}) {
    for (const int64_t count : testing::collective_counts(GetParam())) {
      const testing::ExpectedSum want(GetParam(), count, dtype);
      spawn_tcp_ranks(GetParam(), [&](Communicator& peers) {
        for (const Algorithm algorithm : testing::kExchanges) {
          testing::check_all_reduce(peers, algorithm, want);
        }
      });
    }
  }
}
TEST_P(TcpRanks, CollectivesMatchClosedForms) {
  spawn_tcp_ranks(GetParam(), testing::check_collectives);
}
TEST_P(TcpRanks, WorksFinishInAnyOrder) {
  spawn_tcp_ranks(GetParam(), testing::check_works_in_flight);
}
TEST_P(TcpRanks, MoveWhatTheScheduleSays) {
  spawn_tcp_ranks(GetParam(), testing::check_traffic);
}
INSTANTIATE_TEST_SUITE_P(Ranks, TcpRanks, ::testing::Values(1, 2, 3, 5, 8));

// Sends far more than a socket buffers while the receiver is in other calls.
TEST(TcpTransport, LargeMessagesComeEarlyAndWhole) {
  spawn_tcp_ranks(2, [](Communicator& peers) {
    const Tensor large = testing::integers_of(peers.rank(), 1 << 21, Dtype::kF32);
    const Tensor small = testing::integers_of(peers.rank(), 10, Dtype::kF32);
    const auto first = peers.start_all_reduce({.values = large});
    const auto second = peers.start_all_reduce({.values = small});
    if (peers.rank() == 0) {
      first->wait();
      second->wait();
    } else {
      std::this_thread::sleep_for(50ms);
      second->wait();
      first->wait();
    }
    testing::expect_sum_of_integers(large, 2);
    testing::expect_sum_of_integers(small, 2);
  });
}

TEST(TcpTransport, MessagesBeforeTheirReceiveAreKept) {
  auto mesh = testing::socket_mesh(2);
  TcpTransport left(0, std::move(mesh[0]), true);
  TcpTransport right(1, std::move(mesh[1]), true);
  const std::vector<std::byte> one(3, std::byte{1});
  const std::vector<std::byte> two(5, std::byte{2});
  std::vector<std::byte> got_one(3);
  std::vector<std::byte> got_two(5);
  const Operation first = {.kind = Operation::Kind::kBroadcast, .sequence = 1};
  const Operation second = {.kind = Operation::Kind::kBroadcast, .sequence = 2};
  const Send sends[] = {{1, one}, {1, two}};
  const auto send_1 = left.start(first, {sends, 1}, {});
  const auto send_2 = left.start(second, {sends + 1, 1}, {});
  EXPECT_TRUE(send_1->test());
  EXPECT_TRUE(send_2->test());
  right.progress();
  right.progress();
  const Receive receives[] = {{0, got_one}, {0, got_two}};
  const auto receive_2 = right.start(second, {}, {receives + 1, 1});
  EXPECT_TRUE(receive_2->test());
  EXPECT_EQ(got_two, two);
  const auto receive_1 = right.start(first, {}, {receives, 1});
  EXPECT_TRUE(receive_1->test());
  EXPECT_EQ(got_one, one);
}

TEST(TcpTransport, APeerThatEndsIsNamedOnlyWhereItIsMissed) {
  const CommError error = testing::error_of(spawn_tcp_ranks, 3, [](Communicator& peers) {
    peers.barrier();
    if (peers.rank() == 2) return;
    std::vector<float> values(10, 1);
    peers.all_reduce_sum(std::span(values));
  });
  EXPECT_THAT(error.what(), HasSubstr("lost a peer in all_reduce #2"));
  EXPECT_EQ(error.why(), "rank 2 is gone");

  spawn_tcp_ranks(3, [](Communicator& peers) {  // rank 1 has ended when rank 2 sends
    std::vector<std::byte> byte(1);
    if (peers.rank() == 2) std::this_thread::sleep_for(400ms);
    if (peers.rank() == 1) return;
    std::vector<std::byte> all(3);
    if (peers.rank() == 0) peers.broadcast(byte, 2);
    if (peers.rank() == 2) {
      try {
        peers.broadcast(byte, 2);
      } catch (const CommError& lost) {
        EXPECT_EQ(lost.why(), "rank 1 is gone");
      }
    }
  });
}

TEST(TcpTransport, SaysWhoIsGoneWhileNobodyIsWaitedFor) {
  auto mesh = testing::socket_mesh(3);
  TcpCommunicator stays(0, std::move(mesh[0]), true);
  EXPECT_THAT(stays.gone(), IsEmpty());
  mesh[2].clear();
  std::vector<int> gone;
  for (int i = 0; gone.empty() && i < 400; ++i) {
    std::this_thread::sleep_for(5ms);
    gone = stays.gone();
  }
  EXPECT_THAT(gone, ElementsAre(2));
}

TEST(TcpTransport, DifferentCallsAreNamedAtOnce) {
  const CommError kinds = testing::error_of(spawn_tcp_ranks, 2, [](Communicator& peers) {
    std::vector<std::byte> bytes(8);
    if (peers.rank() == 0) {
      peers.broadcast(bytes, 0);
      peers.barrier();
    } else {
      std::vector<std::byte> all(16);
      peers.all_gather(bytes, all);
    }
  });
  EXPECT_THAT(kinds.what(), HasSubstr("made different calls"));
  const CommError sizes = testing::error_of(spawn_tcp_ranks, 2, [](Communicator& peers) {
    std::vector<std::byte> bytes(peers.rank() == 0 ? 40 : 48);
    peers.broadcast(bytes, 0);
    peers.barrier();
  });
  EXPECT_EQ(sizes.why(),
            "rank 1 in broadcast #1 expected 48 bytes, rank 0 in broadcast #1 sent 40");
}

// The error after the peer of rank 0's only connection sends these bytes.
CommError error_from(std::span<const std::byte> said) {
  auto mesh = testing::socket_mesh(2);
  TcpTransport transport(0, std::move(mesh[0]), true);
  const UniqueFd peer = std::move(mesh[1][0]);
  EXPECT_EQ(::send(peer.get(), said.data(), said.size(), 0), std::ssize(said));
  std::vector<std::byte> room(16);
  const Receive receive = {1, room};
  try {
    const auto round = transport.start({.sequence = 1}, {}, {&receive, 1});
    for (int i = 0; i < 100; ++i) round->test();
  } catch (const CommError& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return CommError("none");
}

TEST(TcpTransport, GarbageIsRefused) {
  const std::vector<std::byte> zeros(64);
  EXPECT_STREQ(error_from(zeros).what(), "rank 0 cannot read what rank 1 sends");
  FrameHeader header = {.kind = static_cast<Operation::Kind>(77), .sequence = 1, .bytes = 16};
  EXPECT_THAT(error_from(std::as_bytes(std::span(&header, 1))).why(),
              HasSubstr("rank 1 in another call sent 16"));
}

// The size in a header must not allocate memory before the bytes arrive.
TEST(TcpTransport, AHugeClaimTakesNoMemory) {
  auto mesh = testing::socket_mesh(2);
  TcpTransport transport(0, std::move(mesh[0]), true);
  const UniqueFd peer = std::move(mesh[1][0]);
  const FrameHeader header = {.sequence = 9, .bytes = uint64_t{1} << 50};
  ASSERT_EQ(::send(peer.get(), &header, sizeof(header), 0), static_cast<ssize_t>(sizeof(header)));
  for (int i = 0; i < 10; ++i) transport.progress();
}

TEST(TcpTransport, ARankThatGivesUpIsGoneForItsPeers) {
  auto mesh = testing::socket_mesh(2);
  TcpTransport left(0, std::move(mesh[0]), true);
  TcpTransport right(1, std::move(mesh[1]), true);
  std::vector<std::byte> room(4);
  const Receive from_right = {1, room};
  left.start({.sequence = 1}, {}, {&from_right, 1}).reset();
  EXPECT_TRUE(left.is_abandoned());
  const Receive from_left = {0, room};
  const auto round = right.start({.sequence = 1}, {}, {&from_left, 1});
  EXPECT_FALSE(round->test());
  std::this_thread::sleep_for(300ms);
  EXPECT_THROW(round->test(), CommError);
}

}  // namespace
}  // namespace lockstep::comm::tcp::tcp_transport_test
