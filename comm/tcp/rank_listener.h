// Accepts the connections of a job's ranks and refuses all others.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/tcp/address.h"
#include "core/unique_fd.h"

namespace lockstep::comm::tcp {

// The first bytes of a connection. All numbers are little-endian.
struct Hello {
  static constexpr uint64_t kMagic = 0x3150455453434b4c;  // "LKCSTEP1"
  static constexpr uint32_t kVersion = 1;

  uint64_t magic = kMagic;
  uint64_t key = 0;  // that ranks of one job share
  uint64_t host = 0;
  uint32_t version = kVersion;
  int32_t rank = 0;
  int32_t size = 0;
  uint32_t port = 0;  // where ranks above may connect; 0 where none will
};

// The answer: this, then `bytes` bytes.
struct Reply {
  enum class Kind : uint32_t {
    kWelcome,    // wait for another reply
    kRefused,    // this is not your meeting; a reason follows
    kFailed,     // the meeting ends; an error follows
    kRankTable,  // all have come; the table of ranks follows
  };
  static constexpr uint64_t kMagic = 0x315050454552534c;

  uint64_t magic = kMagic;
  Kind kind = Kind::kWelcome;
  uint32_t bytes = 0;
};
inline constexpr uint32_t kMaxReasonBytes = 4000;

// False where the other end is gone.
bool send_reply(int socket, Reply::Kind kind, std::span<const std::byte> content);
bool send_reply(int socket, Reply::Kind kind, std::string_view content = {});

// Says something to the user of rank 0 at once.
using Note = std::function<void(const std::string& text)>;

struct JoiningRank {
  UniqueFd socket;
  Hello hello;
  Address from;
};

// Reads a Hello from each connection, and not a byte more. A connection that says something else,
// does not say all of it in kHelloTime, has another key or comes from another user of this host is
// refused, and a note names its address.
class RankListener {
 public:
  static constexpr std::chrono::seconds kHelloTime{10};
  // Beyond it, or where no descriptor is free, the oldest that has not said all is refused.
  static constexpr size_t kMaxWaiting = 64;
  static constexpr int kMaxNotes = 20;

  RankListener(UniqueFd listener, uint64_t key, Note note);

  // The ranks whose Hello has come. Waits for `at_most` where there is nothing to do; the end of
  // a connection of `others` ends the wait too.
  std::vector<JoiningRank> accept(std::chrono::milliseconds at_most,
                                  std::span<const int> others = {});

  void tell(const std::string& text);  // a note, unless there were too many
  // "; 2 connections were refused, the last one 10.0.0.9:4711: ..." or "".
  std::string rejections() const;

 private:
  struct Connection {
    UniqueFd socket;
    Address from;
    Clock::time_point deadline;
    size_t bytes = 0;  // of `hello`
    Hello hello = {};
  };
  enum class State : uint8_t { kWaiting, kAccepted, kRejected };

  void accept_connections(std::vector<JoiningRank>& accepted);
  void make_room(std::vector<JoiningRank>& accepted);
  // Reads what came. False where more is to come.
  bool settle(Connection& connection, std::vector<JoiningRank>& accepted);
  State read(Connection& connection);
  void reject(const Connection& connection, const std::string& why);

  const UniqueFd listener_;
  const uint64_t key_;
  const Note note_;
  std::vector<Connection> pending_;
  int notes_ = 0;
  int rejected_ = 0;
  std::string last_rejected_;
};

}  // namespace lockstep::comm::tcp
