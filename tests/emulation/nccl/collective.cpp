#include "tests/emulation/nccl/collective.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "tests/emulation/access_check.h"
#include "tests/emulation/engine.h"

namespace lockstep::emulation {
namespace {

float read(const std::byte* at, ncclDataType_t type) {
  if (type == ncclFloat32) {
    float value = 0;
    std::memcpy(&value, at, sizeof(value));
    return value;
  }
  if (type == ncclFloat16) {
    _Float16 value = 0;
    std::memcpy(&value, at, sizeof(value));
    return static_cast<float>(value);
  }
  uint16_t high = 0;
  std::memcpy(&high, at, sizeof(high));
  return std::bit_cast<float>(uint32_t{high} << 16);
}

void write(std::byte* at, ncclDataType_t type, float value) {
  if (type == ncclFloat32) {
    std::memcpy(at, &value, sizeof(value));
  } else if (type == ncclFloat16) {
    const auto rounded = static_cast<_Float16>(value);
    std::memcpy(at, &rounded, sizeof(rounded));
  } else {  // NCCL does not specify how it rounds bfloat16
    const auto high = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    std::memcpy(at, &high, sizeof(high));
  }
}

// The message at index `before` among a rank's messages to `to`. Messages are received in the order
// in which they were sent.
const MessageList::Message& message(const MessageList& list, int to, size_t bytes, int before = 0) {
  for (int i = 0; i < list.count; ++i) {
    if (list.messages[i].to != to || before-- > 0) continue;
    if (list.messages[i].bytes == bytes) return list.messages[i];
    throw Fault("NCCL: a message of " + std::to_string(list.messages[i].bytes) +
                " bytes for a receiver of " + std::to_string(bytes));
  }
  throw Fault("NCCL: the ranks' calls differ: nobody sends what is received");
}

}  // namespace

bool Collective::ready() {
  if (communicator_->aborted) return true;
  if (communicator_->hangs) return false;
  if (number_ == 0) {
    number_ = ++communicator_->announced;
    write_messages();
    communicator_->world.announce(communicator_->rank, number_);
  }
  for (int rank = 0; rank < communicator_->size; ++rank) {
    if (!communicator_->world.has_announced(rank, number_)) return false;
  }
  return true;
}

void Collective::run() {
  if (communicator_->aborted) return;
  std::array<int, kMaxRanks> received{}, sent_to_all{};  // messages of each rank so far
  for (const NcclCall& call : calls_) {
    const auto peer = static_cast<size_t>(call.peer);
    switch (call.kind) {
      case NcclCall::Kind::kSend:
        break;
      case NcclCall::Kind::kReceive:
        receive(call, communicator_->rank, received.at(peer)++);
        break;
      case NcclCall::Kind::kBroadcast:
        if (call.peer != communicator_->rank) receive(call, kToAll, sent_to_all.at(peer));
        ++sent_to_all.at(peer);
        break;
      case NcclCall::Kind::kAllReduce:
        all_reduce(call, sent_to_all);
        for (int& count : sent_to_all) ++count;
    }
  }
  number_ = 0;  // a graph may run it again
}

void Collective::write_messages() {
  MessageList& list = communicator_->world.message_list(communicator_->rank, number_);
  std::byte* const outbox = communicator_->world.outbox(communicator_->rank, number_);
  list.count = 0;
  size_t end = 0;
  for (const NcclCall& call : calls_) {
    const bool only_receives =
        call.kind == NcclCall::Kind::kBroadcast && call.peer != communicator_->rank;
    if (call.kind == NcclCall::Kind::kReceive || only_receives) continue;
    if (list.count == MessageList::kMax || end + call.bytes() > World::kOutboxBytes) {
      throw Fault("NCCL: more than the emulation holds");
    }
    std::memcpy(outbox + end, call.from, call.bytes());
    const int to = call.kind == NcclCall::Kind::kSend ? call.peer : kToAll;
    list.messages[list.count++] = {.to = to, .begin = end, .bytes = call.bytes()};
    end += call.bytes();
  }
}

// Receives the message at index `before` among those from call.peer to `to`, which is this rank or
// kToAll.
void Collective::receive(const NcclCall& call, int to, int before) {
  World& world = communicator_->world;
  const MessageList::Message& sent =
      message(world.message_list(call.peer, number_), to, call.bytes(), before);
  std::memcpy(call.to, world.outbox(call.peer, number_) + sent.begin, sent.bytes);
  note_written(call.to, sent.bytes);
}

// Sums from the last rank to the first, an order that differs from Lockstep's own. before[rank] is
// the index of that rank's values among its messages to all.
void Collective::all_reduce(const NcclCall& call, std::span<const int> before) {
  World& world = communicator_->world;
  auto* const to = static_cast<std::byte*>(call.to);
  const size_t element = call.bytes() / call.count;
  for (size_t i = 0; i < call.count; ++i) {
    float sum = 0;
    for (int rank = communicator_->size; rank-- > 0;) {
      const MessageList::Message& sent = message(world.message_list(rank, number_),
                                                 kToAll,
                                                 call.bytes(),
                                                 before[static_cast<size_t>(rank)]);
      sum += read(world.outbox(rank, number_) + sent.begin + i * element, call.type);
    }
    write(to + i * element, call.type, sum);
  }
  note_written(call.to, call.bytes());
}

}  // namespace lockstep::emulation
