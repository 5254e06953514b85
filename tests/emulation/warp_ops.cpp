// Exchanges between the lanes of a warp: all lanes arrive at one operation, and the last one
// computes all results.
#include <algorithm>
#include <bit>

#include "tests/emulation/machine.h"

namespace lockstep::emulation {

uint64_t Machine::warp_op(const WarpCall& call, const Location& where) {
  outside([&] {
    Thread& me = *current_;
    Thread& first = threads_[me.number - me.lane];
    const unsigned count = std::min(kWarp, static_cast<unsigned>(threads_.size()) - first.number);
    me.call = call;
    me.where = where;
    me.state = Progress::kInWarpOp;
    if (!std::has_single_bit(static_cast<unsigned>(call.width)) ||
        call.width > static_cast<int>(kWarp))
      fail("a shuffle's width is no power of two up to 32", me);
    if ((call.mask >> me.lane & 1U) == 0) fail("a lane is not in its own mask", me);
    if (count < kWarp && call.mask >> count != 0)
      fail("the mask names lanes that the block does not have", me);
    bool complete = true;
    for (unsigned lane = 0; lane < count; ++lane) {
      if ((call.mask >> lane & 1U) == 0) continue;
      const Thread& other = (&first)[lane];
      if (other.state == Progress::kDone) fail("the mask names a lane that has returned", me);
      complete &= other.state == Progress::kInWarpOp && is_in_same_operation(other);
    }
    if (complete) exchange(first, count, call);
    if (!complete || schedule.order == Order::kRandom) wait();
    current_->state = Progress::kReady;
  });
  return current_->result;
}

// Whether `other`, a lane in the current lane's mask that waits in a warp operation, waits in the
// same one. It may still be in an earlier operation of other lanes, but two lanes that name each
// other must be in the same operation.
bool Machine::is_in_same_operation(const Thread& other) {
  const WarpCall& mine = current_->call;
  if (other.call.mask == mine.mask && other.call.op == mine.op &&
      same_place(other.where, current_->where)) {
    return true;
  }
  if ((other.call.mask >> current_->lane & 1U) == 0) return false;
  fail("lanes of one mask meet in different warp operations", *current_, &other);
}

void Machine::exchange(Thread& first, unsigned count, const WarpCall& call) {
  if (call.op == WarpOp::kSync) join_lanes(clock_of(first), call.mask);
  for (unsigned lane = 0; lane < count; ++lane) {
    if ((call.mask >> lane & 1U) == 0) continue;
    Thread& thread = (&first)[lane];
    thread.result = result_of(first, count, lane);
    if (&thread != current_ || schedule.order == Order::kRandom) wake(thread);
  }
}

uint64_t Machine::result_of(Thread& first, unsigned count, unsigned lane) {
  const WarpCall& call = (&first)[lane].call;
  const int own = static_cast<int>(lane);
  const int begin = own & ~(call.width - 1);
  const int end = begin + call.width;
  int source = own;
  switch (call.op) {
    case WarpOp::kSync:
      return 0;
    case WarpOp::kBallot: {
      uint64_t ballot = 0;
      for (unsigned i = 0; i < count; ++i) {
        if ((call.mask >> i & 1U) != 0) ballot |= (&first)[i].call.value << i;
      }
      return ballot;
    }
    case WarpOp::kShuffle:
      source = begin + (call.argument & (call.width - 1));
      break;
    case WarpOp::kShuffleUp:
      if (own - call.argument >= begin) source = own - call.argument;
      break;
    case WarpOp::kShuffleDown:
      if (own + call.argument < end) source = own + call.argument;
      break;
    case WarpOp::kShuffleXor:
      if ((own ^ call.argument) < end) source = own ^ call.argument;
      break;
  }
  if ((call.mask >> source & 1U) == 0)
    fail("a shuffle reads a lane that is not in the mask", (&first)[lane]);
  return (&first)[source].call.value;
}

unsigned Machine::active_mask() const {
  const Thread& first = threads_[current_->number - current_->lane];
  unsigned mask = 0;
  for (unsigned lane = 0; lane < kWarp && first.number + lane < threads_.size(); ++lane) {
    if ((&first)[lane].state != Progress::kDone) mask |= 1U << lane;
  }
  return mask;
}

}  // namespace lockstep::emulation
