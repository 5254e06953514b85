// Memory that the emulated ranks of an NCCL communicator share, each in its own process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::emulation {

constexpr int kMaxRanks = 160;
constexpr int kToAll = -1;

// A rank's contribution to one operation: a list of messages whose bytes are in its outbox.
struct MessageList {
  static constexpr int kMax = 1024;
  struct Message {
    int to;
    size_t begin, bytes;
  };
  int count = 0;
  Message messages[kMax] = {};
};

class World {
 public:
  static constexpr size_t kOutboxBytes = size_t{32} << 20;  // only written pages take memory

  // Creates the memory without a name in a file system, so nothing is left behind; other processes
  // open it through the process that created it.
  static std::string create();
  explicit World(const std::string& where);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // join() counts this rank in; joined() returns how many ranks have joined.
  void join() { ++header().joined; }
  int joined() const { return header().joined; }

  // A rank announces operation `number`, counted from 1, once it has written its message list and
  // outbox. Both are reused two operations later, when all ranks have read them.
  void announce(int rank, uint64_t number) { header().arrived[rank] = number; }
  bool has_announced(int rank, uint64_t number) const { return header().arrived[rank] >= number; }

  MessageList& message_list(int rank, uint64_t number) { return header().lists[rank][number % 2]; }
  std::byte* outbox(int rank, uint64_t number);

 private:
  struct Header {
    std::atomic<int> joined;
    std::atomic<uint64_t> arrived[kMaxRanks];
    MessageList lists[kMaxRanks][2];
  };
  static size_t bytes();
  Header& header() const { return *static_cast<Header*>(memory_); }

  void* memory_;
};

}  // namespace lockstep::emulation
