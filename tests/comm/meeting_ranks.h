// Ranks that meet over the loopback device, and processes that call them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "comm/tcp/meeting.h"
#include "core/error.h"

namespace lockstep::comm::tcp::meeting_ranks {

// A port that was free just now.
inline uint16_t free_port() {
  return Address::of_socket(listen_at(Address::any(AF_INET, 0)).get()).port();
}

inline MeetingPlace local_place(const std::string& token = "job") {
  return {.file = {}, .host = "127.0.0.1", .ports = {free_port()}, .token = token};
}

struct Outcome {
  std::optional<Peers> peers;
  std::string error;  // "what | why"
  ExitCode code = ExitCode::kDone;
};

class Notes {
 public:
  Note note() {
    return [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      all_ += text + "\n";
    };
  }
  std::string all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::string all_;
};

inline Outcome try_to_meet(const MeetingPlace& place,
                           int rank,
                           int size,
                           const MeetingOptions& options) {
  try {
    return {.peers = meet(place, rank, size, options), .error = {}};
  } catch (const Error& error) {
    return {.peers = {},
            .error = std::string(error.what()) + " | " + error.why(),
            .code = error.code()};
  }
}

// Runs the given ranks of `size`, each on a thread.
inline std::vector<Outcome> meet_all(const MeetingPlace& place,
                                     const std::vector<int>& ranks,
                                     int size,
                                     const MeetingOptions& options = {
                                         .timeout = std::chrono::seconds(20), .note = {}}) {
  std::vector<Outcome> outcomes(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] { outcomes[i] = try_to_meet(place, ranks[i], size, options); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// Every two ranks must have the two ends of one connection.
inline void expect_full_mesh(std::vector<Outcome>& ranks) {
  const int size = static_cast<int>(ranks.size());
  for (int a = 0; a < size; ++a) {
    ASSERT_TRUE(ranks[static_cast<size_t>(a)].peers) << ranks[static_cast<size_t>(a)].error;
    EXPECT_EQ(ranks[static_cast<size_t>(a)].peers->hosts, ranks[0].peers->hosts);
  }
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  for (int a = 0; a < size; ++a) {
    for (int b = 0; b < size; ++b) {
      if (a == b) continue;
      const int said = 100 * a + b;
      int heard = -1;
      const int from = ranks[static_cast<size_t>(a)].peers->sockets[static_cast<size_t>(b)].get();
      const int to = ranks[static_cast<size_t>(b)].peers->sockets[static_cast<size_t>(a)].get();
      EXPECT_TRUE(send_all(from, std::as_bytes(std::span(&said, 1)), deadline));
      EXPECT_TRUE(receive_all(to, std::as_writable_bytes(std::span(&heard, 1)), deadline));
      EXPECT_EQ(heard, said);
    }
  }
}

inline Address::Bytes loopback() {
  Address::Bytes bytes = Address::any(AF_INET, 0).bytes();
  bytes[12] = 127;
  bytes[15] = 1;
  return bytes;
}

inline UniqueFd caller_of(const MeetingPlace& place) {
  std::string problem;
  std::vector<Address> candidates = resolve(place.host, place.ports[0], problem);
  for (int i = 0; i < 500; ++i) {
    UniqueFd socket = connect_to(candidates.at(0), Clock::now() + std::chrono::seconds(1), problem);
    if (socket.valid()) return socket;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ADD_FAILURE() << problem;
  return {};
}

template <class T>
void say(const UniqueFd& socket, const T& what) {
  const auto bytes = std::as_bytes(std::span(what));
  EXPECT_TRUE(send_all(socket.get(), bytes, Clock::now() + std::chrono::seconds(5)));
}

inline void say_hello(const UniqueFd& socket, const Hello& hello) {
  say(socket, std::span(&hello, 1));
}

}  // namespace lockstep::comm::tcp::meeting_ranks
