// Memory that the emulated ranks of an NCCL communicator share, each in its own process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::emulation {

constexpr int kMaxRanks = 16;
constexpr int kToAll = -1;

// A rank's contribution to one operation: messages, whose bytes lie in its outbox.
struct Letter {
  static constexpr int kMax = 1024;
  struct Message {
    int to;
    size_t begin, bytes;
  };
  int messages = 0;
  Message message[kMax] = {};
};

class World {
 public:
  static constexpr size_t kOutboxBytes = size_t{32} << 20;  // those written are real memory

  // Nothing with a name is left behind: the memory is reached through the process that made it.
  static std::string create();
  explicit World(const std::string& where);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // A rank is there; then so many are.
  void join() { ++header().joined; }
  int joined() const { return header().joined; }

  // Operation `number`, from 1: a rank has written its letter and outbox; then so have the others.
  // A box is used again two operations later, when all have read it.
  void announce(int rank, uint64_t number) { header().arrived[rank] = number; }
  bool has_announced(int rank, uint64_t number) const { return header().arrived[rank] >= number; }

  Letter& letter(int rank, uint64_t number) { return header().letters[rank][number % 2]; }
  std::byte* outbox(int rank, uint64_t number);

 private:
  struct Header {
    std::atomic<int> joined;
    std::atomic<uint64_t> arrived[kMaxRanks];
    Letter letters[kMaxRanks][2];
  };
  static size_t bytes();
  Header& header() const { return *static_cast<Header*>(memory_); }

  void* memory_;
};

}  // namespace lockstep::emulation
