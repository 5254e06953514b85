// The messages of one connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "comm/operation.h"
#include "comm/tcp/address.h"
#include "core/unique_fd.h"

namespace lockstep::comm::tcp {

// Precedes each message.
struct FrameHeader {
  static constexpr uint32_t kMagic = 0x474d534c;

  uint32_t magic = kMagic;
  Operation::Kind kind = Operation::Kind::kBarrier;
  uint8_t zeros[3] = {};
  uint64_t sequence = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(FrameHeader) == 24, "no padding: it goes over the wire");

// Messages go out in the order of send(). One that comes before it is expected is kept until then,
// since the messages of another operation may be after it.
class Link {
 public:
  Link(UniqueFd socket, int rank, int peer)
      : socket_(std::move(socket)), rank_(rank), peer_(peer) {}

  int peer() const { return peer_; }

  // `done` is set when the message is through; all memory stays until then.
  void send(const Operation& operation, std::span<const std::byte> bytes, bool& done);
  // Errors: CommError where the peer's message is of another call.
  void expect(const Operation& operation, std::span<std::byte> bytes, bool& done);

  // Sends and receives what it can without waiting. Errors: CommError for a message of another call
  // and for what is no message.
  void progress();

  // When the end of the connection was noticed, with all messages before it received.
  std::optional<Clock::time_point> closed_since() const { return closed_since_; }
  // Forgets all messages, and lets the peer know that this rank has given up.
  void abandon();

 private:
  struct Outgoing {
    FrameHeader header;
    std::span<const std::byte> bytes;
    size_t written = 0;  // of both
    bool* done = nullptr;
  };
  struct Expected {
    Operation operation;
    std::span<std::byte> bytes;
    bool* done = nullptr;
  };
  struct Early {
    FrameHeader header;
    std::vector<std::byte> bytes;
  };

  void flush();
  void read();
  void begin_body();
  void end_body();
  size_t read_some(std::span<std::byte> into);
  void check_same_call(const FrameHeader& header, const Expected& expected) const;

  UniqueFd socket_;
  const int rank_;
  const int peer_;
  std::deque<Outgoing> outgoing_;
  std::vector<Expected> expected_;
  std::vector<Early> early_;      // complete
  FrameHeader header_;            // of the message that is being received
  size_t received_ = 0;           // of the header and its message
  std::optional<Expected> into_;  // where it goes; early_body_ where nothing was expected
  std::vector<std::byte> early_body_;
  std::optional<Clock::time_point> closed_since_;
};

}  // namespace lockstep::comm::tcp
