// What ranks without MPI hear from each other, and from strangers, before they trust each other.
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <sys/stat.h>

#include "comm/gather.h"
#include "comm/handshake.h"
#include "comm/meeting_place.h"
#include "comm/spawn.h"
#include "comm/tcp/address.h"
#include "comm/tcp/host_meeting.h"
#include "comm/tcp/join_meeting.h"
#include "comm/tcp/meeting_file.h"
#include "comm/tcp/rank_listener.h"
#include "core/error.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {
namespace {

using namespace std::chrono_literals;
using comm::tcp::Address;
using comm::tcp::Clock;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Message>
std::string text_of(const Message& message) {
  return std::string(as_text(std::as_bytes(std::span(&message, 1))));
}

Address loopback() {
  std::string problem;
  return comm::tcp::resolve("127.0.0.1", 0, problem).at(0);
}

// A connection to rank 0 says this, and leaves.
void introduce(std::string_view input) {
  UniqueFd listener = comm::tcp::listen_at(loopback());
  const Address endpoint = Address::of_socket(listener.get());
  comm::tcp::RankListener ranks(std::move(listener), /*key=*/7, {});
  std::string problem;
  UniqueFd peer = comm::tcp::connect_to(endpoint, Clock::now() + 1s, problem);
  if (!peer.valid()) return;
  comm::tcp::send_all(peer.get(), std::as_bytes(std::span(input)), Clock::now() + 1s);
  ::shutdown(peer.get(), SHUT_WR);
  for (int i = 0; i < 3; ++i) {
    for (const comm::tcp::JoiningRank& accepted : ranks.accept(1ms)) {
      if (accepted.hello.key != 7)
        throw std::logic_error("a connection with another key was accepted");
    }
  }
}

std::vector<std::string> introduction_seeds() {
  return {text_of(comm::tcp::Hello{.key = 7, .rank = 1, .size = 2, .port = 4711}),
          text_of(comm::tcp::Hello{.key = 8, .rank = -1, .size = 2}),
          "GET / HTTP/1.1\r\n\r\n"};
}

// Another rank, to whom what listens at rank 0's address says this.
void answer(std::string_view input) {
  const UniqueFd listener = comm::tcp::listen_at(loopback());
  const uint16_t port = Address::of_socket(listener.get()).port();
  std::jthread host([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (!comm::tcp::wait_readable(listener.get(), Clock::now() + 1ms)) continue;
      const UniqueFd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      comm::tcp::send_all(peer.get(), std::as_bytes(std::span(input)), Clock::now() + 1s);
    }
  });
  (void)comm::tcp::join_meeting(
      {.file = {}, .host = "127.0.0.1", .ports = {port}, .token = {}}, 1, 2, {.timeout = 2ms});
}

std::vector<std::string> answer_seeds() {
  using comm::tcp::Reply;
  const std::string welcome = text_of(Reply{});
  const std::string refused = text_of(Reply{.kind = Reply::Kind::kRefused, .bytes = 2}) + "no";
  const std::string error = comm::tcp::encode_error(UsageError("what", "why", "try"));
  const std::string failed =
      text_of(Reply{.kind = Reply::Kind::kFailed, .bytes = static_cast<uint32_t>(error.size())});
  const std::string table(sizeof(uint64_t) + 2 * sizeof(comm::tcp::RankAddress), '\0');
  const std::string complete =
      text_of(Reply{.kind = Reply::Kind::kRankTable, .bytes = static_cast<uint32_t>(table.size())});
  return {welcome + complete + table, refused, welcome + failed + error};
}

// A place to meet: as a URL, as Slurm's list, and as the file that rank 0 left.
void read_place(std::string_view input) {
  std::string problem;
  const auto path = as_file(input);
  ::chmod(path.c_str(), S_IRUSR | S_IWUSR);
  (void)comm::tcp::read_meeting_file(path, problem);
  (void)comm::first_host(std::string(input));
  (void)comm::parse_meeting_url(input);
}

std::vector<std::string> place_seeds() {
  const auto path = scratch() / "meeting";
  const comm::tcp::MeetingFile file(path, {.key = 1, .host = 2, .addresses = {loopback()}});
  return {"tcp://10.0.0.7:29500",
          testing::read_text(path),
          "tcp://[::1]:0",
          "file:///tmp/meet",
          "node[03-07,12],login1"};
}

// Rank 1 sends this in place of its fields.
void shake_hands(std::string_view input) {
  spawn(2, [&](Communicator& peers) {
    if (peers.rank() == 1) {
      (void)comm::gather_texts(peers, std::string(input));
      return;
    }
    const std::vector<comm::HandshakeField> fields = {
        {.name = "lr", .value = "0.1"},
        {.kind = comm::HandshakeField::Kind::kEnvironment, .name = "isa", .value = "x86-64-v3"}};
    comm::handshake(peers, fields);
  });
}

std::vector<std::string> handshake_seeds() {
  return {std::string("alr=0.1\0eisa=x86-64-v3\0", 23),
          std::string("alr=0.2\0", 8),
          std::string("\0", 1)};
}

constexpr Target kWireTargets[] = {
    {"tcp_introduction", introduce, introduction_seeds},
    {"tcp_answer", answer, answer_seeds},
    {"meeting_place", read_place, place_seeds},
    {"handshake", shake_hands, handshake_seeds},
};

}  // namespace

std::span<const Target> wire_targets() {
  return kWireTargets;
}

}  // namespace lockstep::fuzz
