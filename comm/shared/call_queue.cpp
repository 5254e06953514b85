#include "comm/shared/call_queue.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "comm/backoff.h"
#include "comm/call_record.h"
#include "comm/wait_limit.h"

namespace lockstep::comm {
namespace {

// A rank enters call k only when its call k-kMaxPending is over, which means that all ranks have
// entered that one; and to enter it they ended call k-2*kMaxPending, having read its record on
// all ranks. So the record's place is free for call k.
constexpr size_t kMaxPending = 32;
static_assert(RankState::kRecords >= 2 * kMaxPending);

// How long a sleeping rank goes without checking the deadline and the peers.
constexpr std::chrono::milliseconds kNap{50};

std::string in_full(const CallRecord& record) {
  constexpr std::string_view kAlgorithms[] = {"tree", "ring", "star", "library", "none"};
  static_assert(std::size(kAlgorithms) == static_cast<size_t>(Algorithm::kNone) + 1);
  const std::string place =
      record.segment == CallRecord::kNowhere
          ? "memory of its own"
          : fmt::format("segment {} from byte {} on", record.segment, record.offset);
  return fmt::format(", {} over {} in {}, root {}",
                     kAlgorithms[static_cast<size_t>(record.algorithm)],
                     name_of(record.dtype),
                     place,
                     record.root);
}

// Sorts the ranks and removes duplicates.
std::vector<int> distinct(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  return ranks;
}

}  // namespace

CallQueue::CallQueue(SharedHost& host,
                     std::chrono::milliseconds stall_abort,
                     const CallContext& context)
    : host_(host),
      stall_abort_(stall_abort),
      context_(context),
      rank_(host.rank()),
      shares_cores_(host.shares_cores()) {
  const Segment control =
      host.allocate(sizeof(RankState), {.kind = Operation::Kind::kAllocate, .sequence = 0});
  memory_ = control.memory;
  for (std::byte* part : control.parts) states_.push_back(reinterpret_cast<RankState*>(part));
  posted_ = state(rank_).posted.value.load();
  phase_ = next_phase_ = state(rank_).phase.value.load();
}

std::shared_ptr<const Call> CallQueue::post(const Operation& operation,
                                            const CallRecord& record,
                                            std::unique_ptr<Exchange> exchange) {
  if (calls_.size() >= kMaxPending) {
    const std::shared_ptr<const Call> oldest = calls_.front();  // it may have no other owner
    wait(*oldest);
  }
  auto call = std::make_shared<Call>();
  call->operation = operation;
  call->record = record;
  call->exchange = std::move(exchange);
  call->number = ++posted_;
  call->first_phase = next_phase_;
  next_phase_ += call->phases();
  state(rank_).records[call->number % RankState::kRecords] = record;
  state(rank_).posted.raise_to(call->number);
  calls_.push_back(call);
  record_entry(context_.recorder, operation);
  return call;
}

void CallQueue::advance() {
  for (const auto& call : calls_) {
    if (!run_phases(*call)) break;
  }
  while (!calls_.empty() && calls_.front()->is_over) calls_.pop_front();
}

void CallQueue::wait(const Call& call) {
  while (!call.is_over) {
    advance();
    if (call.is_over) return;
    // The oldest call depends on no later one, here or elsewhere, so it is safe to wait for alone.
    const Call& oldest = *calls_.front();
    PendingCounter pending{};
    if (find_pending(oldest, pending)) wait_for(pending, oldest);
  }
}

// True when this rank's part of `call` is done.
bool CallQueue::run_phases(Call& call) {
  PendingCounter pending{};
  while (!call.is_over && !find_pending(call, pending)) {
    if (!call.entered_by_all) {
      compare_records(call);
      call.entered_by_all = true;
    } else if (call.phases_done == call.phases()) {
      call.is_over = true;
      record_exit(context_.recorder, call.operation);
    } else {
      call.exchange->run(call.phases_done);
      ++call.phases_done;
      state(rank_).phase.raise_to(++phase_);
    }
  }
  return call.entered_by_all && call.phases_done == call.phases();
}

bool CallQueue::find_pending(const Call& call, PendingCounter& pending) const {
  if (!call.entered_by_all) {
    pending.counter = &RankState::posted;
    pending.target = call.number;
    return find_lagging(Need::kEverybody, pending);
  }
  const Need need = call.exchange ? call.exchange->need(call.phases_done) : Need{};
  pending.counter = &RankState::phase;
  pending.target = call.first_phase + need.phases;
  return find_lagging(need.rank, pending);
}

bool CallQueue::find_lagging(int rank, PendingCounter& pending) const {
  if (rank == Need::kNobody) return false;
  pending.needs_everybody = rank == Need::kEverybody;
  const int first = pending.needs_everybody ? 0 : rank;
  const int last = pending.needs_everybody ? host_.size() - 1 : rank;
  for (pending.rank = first; pending.rank <= last; ++pending.rank) {
    if (!(state(pending.rank).*pending.counter).has_reached(pending.target)) return true;
  }
  return false;
}

void CallQueue::compare_records(const Call& call) const {
  for (int peer = 0; peer < host_.size(); ++peer) {
    const CallRecord& theirs = state(peer).records[call.number % RankState::kRecords];
    if (theirs == call.record) continue;
    const Operation operation{theirs.kind, theirs.sequence};
    const bool alike =
        to_string(operation) == to_string({call.record.kind, call.record.sequence}) &&
        theirs.bytes == call.record.bytes;
    throw CommError(
        fmt::format("ranks {} and {} made different calls", rank_, peer),
        fmt::format("rank {} is in {} with {} bytes{}, rank {} is in {} with {} bytes{}",
                    rank_,
                    to_string(call.operation),
                    call.record.bytes,
                    alike ? in_full(call.record) : "",
                    peer,
                    to_string(operation),
                    theirs.bytes,
                    alike ? in_full(theirs) : ""));
  }
}

void CallQueue::publish(const PendingCounter& pending) {
  const uint32_t is_phase = pending.counter == &RankState::phase ? 1 : 0;
  Waiting& waits = state(rank_).waits;
  waits.target.store(pending.target);
  waits.on.store(1 + 2 * static_cast<uint32_t>(pending.rank) + is_phase);
}

void CallQueue::wait_for(const PendingCounter& pending, const Call& call) {
  Counter& counter = state(pending.rank).*pending.counter;
  Backoff backoff(shares_cores_);
  while (backoff.poll_or_yield()) {
    if (counter.has_reached(pending.target)) return;
  }
  publish(pending);
  const RecordedWait recorded(context_.recorder, call.operation);
  WaitLimit limit(stall_abort_, context_);
  while (!counter.has_reached(pending.target)) {
    check_alive(call);
    if (limit.warning_is_due()) limit.warn(call.operation, rank_, culprits_of(pending));
    limit.look_at([&] { return culprits_of(pending); });
    const auto left = limit.left();
    if (left <= WaitLimit::Clock::duration::zero()) {
      const std::vector<int> missing = culprits_of(pending);
      if (!missing.empty()) blame(missing.front());
      throw limit.error(call.operation, rank_, missing);
    }
    counter.sleep_below(pending.target, std::min<WaitLimit::Clock::duration>(left, kNap));
  }
  state(rank_).waits.on.store(0);
}

// A rank that ended after its part of the call is no loss.
void CallQueue::check_alive(const Call& call) {
  std::vector<int> gone;
  for (int peer = 0; peer < host_.size(); ++peer) {
    if (peer == rank_ || !host_.is_gone(peer)) continue;
    if (state(peer).posted.has_reached(call.number) &&
        state(peer).phase.has_reached(call.first_phase + call.phases())) {
      continue;
    }
    gone.push_back(peer);
  }
  if (gone.empty()) return;
  std::vector<int> culprits;
  culprits.reserve(gone.size());
  for (const int peer : gone) culprits.push_back(root_culprit(peer));
  culprits = distinct(std::move(culprits));
  blame(culprits.front());
  throw lost_peer_error(call.operation, rank_, gone, culprits);
}

std::vector<int> CallQueue::culprits_of(const PendingCounter& pending) const {
  std::vector<int> culprits;
  for (int peer = 0; peer < host_.size(); ++peer) {
    const bool is_needed = pending.needs_everybody ? peer != rank_ : peer == pending.rank;
    if (!is_needed || (state(peer).*pending.counter).has_reached(pending.target)) continue;
    culprits.push_back(root_culprit(peer));
  }
  return distinct(std::move(culprits));
}

int CallQueue::root_culprit(int rank) const {
  for (int i = 0; i < host_.size(); ++i) {
    const int next = held_up_by(rank);
    if (next == rank || next == rank_) break;
    rank = next;
  }
  return rank;
}

int CallQueue::held_up_by(int rank) const {
  const RankState& theirs = state(rank);
  if (const uint32_t blamed = theirs.blames.load(); blamed > 0) return static_cast<int>(blamed) - 1;
  if (host_.is_gone(rank)) return rank;  // it waits no more
  const uint32_t on = theirs.waits.on.load();
  const uint32_t target = theirs.waits.target.load();
  if (on == 0 || theirs.waits.on.load() != on) return rank;
  const auto peer = static_cast<int>((on - 1) / 2);
  const RankState& awaited = state(peer);
  const Counter& counter = (on - 1) % 2 == 1 ? awaited.phase : awaited.posted;
  return counter.has_reached(target) ? rank : peer;
}

}  // namespace lockstep::comm
