#include "tests/emulation/runtime/queues.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

#include "tests/emulation/runtime/state.h"

namespace lockstep::emulation {
namespace {

constexpr size_t kQueueCapacity = 1000;  // NVIDIA's forum reports about 1,000 launches

bool is_blocked(const CUstream_st& stream) {
  const auto& waits = stream.queue.front().waits;
  return waits && !waits->passed;
}

std::vector<size_t> ready_nodes(const Operation& operation) {
  std::vector<size_t> found;
  for (size_t i = 0; i < operation.nodes->size(); ++i) {
    const GraphNode& node = (*operation.nodes)[i];
    const auto has_run = [&](size_t earlier) { return operation.ran[earlier]; };
    if (!operation.ran[i] && std::ranges::all_of(node.after, has_run) &&
        (!node.ready || node.ready()))
      found.push_back(i);
  }
  return found;
}

bool can_run(const CUstream_st& stream) {
  if (stream.queue.empty() || is_blocked(stream)) return false;
  const Operation& next = stream.queue.front();
  return !next.nodes || next.nodes->empty() || !ready_nodes(next).empty();
}

// Only other processes can make progress, and they may wait for this one.
void let_others_run() {
  run_awaited_work();
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

bool blocking(const CUstream_st& stream) {
  return (stream.flags & cudaStreamNonBlocking) == 0;
}

}  // namespace

CUstream_st& Queues::create(int device, unsigned flags, int priority) {
  std::erase_if(streams_, [](const auto& old) { return old->destroyed && old->queue.empty(); });
  streams_.push_back(std::make_unique<CUstream_st>(
      CUstream_st{.device = device, .flags = flags, .priority = priority, .number = ++created_}));
  return *streams_.back();
}

void Queues::destroy(CUstream_st& stream) {
  stream.destroyed = true;
}

CUstream_st* Queues::find(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return &default_stream_;
  for (const auto& stream : streams_) {
    if (stream.get() == handle && !stream->destroyed) return handle;
  }
  return nullptr;
}

void Queues::clear() {
  streams_.clear();
  default_stream_ = {};
  created_ = 0;
}

void Queues::set_order(StreamOrder order, uint64_t seed) {
  order_ = order;
  random_.seed(seed);
  eagerness_ = random_() % 4;
}

void Queues::push(CUstream_st& stream, Operation operation) {
  if (&stream == &default_stream_) {
    for (const auto& other : streams_) {
      if (blocking(*other)) follow(stream, *other);
    }
  } else if (blocking(stream)) {
    follow(stream, default_stream_);
  }
  // A call that finds the queue full waits in the driver until there is room.
  while (stream.queue.size() >= kQueueCapacity) advance(stream);
  if (operation.nodes) operation.ran.resize(operation.nodes->size());
  stream.queue.push_back(std::move(operation));
  if (order_ == StreamOrder::kEager) finish_all();
  if (order_ == StreamOrder::kRandom) {
    for (auto count = random_() % (eagerness_ + 1); count > 0; --count) run_any();
  }
}

void Queues::follow(CUstream_st& later, CUstream_st& earlier) {
  if (earlier.queue.empty()) return;
  const auto point = std::make_shared<Point>();
  earlier.queue.push_back({.passes = point});
  later.queue.push_back({.waits = point});
}

void Queues::finish(CUstream_st& stream) {
  while (!stream.queue.empty()) advance(stream);
}

void Queues::finish(const Point& point) {
  while (!point.passed) advance(point);
}

void Queues::finish_all() {
  finish(default_stream_);
  for (const auto& stream : streams_) finish(*stream);
}

void Queues::advance(CUstream_st& stream) {
  if (stream.queue.empty()) return;
  if (order_ == StreamOrder::kRandom) {
    if (!run_any()) let_others_run();
    return;
  }
  CUstream_st* next = &stream;
  while (is_blocked(*next)) next = &passer_of(*next->queue.front().waits);
  if (!run_one(*next)) let_others_run();
}

void Queues::advance(const Point& point) {
  if (!point.passed) advance(passer_of(point));
}

CUstream_st& Queues::passer_of(const Point& point) {
  const auto passes = [&](const CUstream_st& stream) {
    return std::ranges::any_of(
        stream.queue, [&](const Operation& queued) { return queued.passes.get() == &point; });
  };
  if (passes(default_stream_)) return default_stream_;
  for (const auto& stream : streams_) {
    if (passes(*stream)) return *stream;
  }
  throw std::logic_error("a point that nobody will pass");
}

bool Queues::run_any() {
  std::vector<CUstream_st*> candidates;
  if (can_run(default_stream_)) candidates.push_back(&default_stream_);
  for (const auto& stream : streams_) {
    if (can_run(*stream)) candidates.push_back(stream.get());
  }
  if (candidates.empty()) return false;
  return run_one(*candidates[random_() % candidates.size()]);
}

bool Queues::run_one(CUstream_st& stream) {
  Operation& operation = stream.queue.front();
  if (operation.nodes && !operation.nodes->empty()) {
    const std::vector<size_t> candidates = ready_nodes(operation);
    if (candidates.empty()) return false;
    const size_t node = pick_node(operation, candidates);
    ++clock_;
    run_on_device((*operation.nodes)[node].run);
    operation.ran[node] = true;
    if (!std::ranges::all_of(operation.ran, std::identity())) return true;
  } else {
    ++clock_;
  }
  if (operation.passes) *operation.passes = {.passed = true, .time = clock_};
  stream.queue.pop_front();
  return true;
}

size_t Queues::pick_node(const Operation& operation, const std::vector<size_t>& candidates) {
  const auto priority = [&](size_t node) {  // the lowest number is the highest
    return operation.priority.value_or((*operation.nodes)[node].priority);
  };
  switch (order_) {
    case StreamOrder::kEager:
      return *std::ranges::min_element(candidates, std::less(), priority);
    case StreamOrder::kLazy:
      return candidates.back();
    case StreamOrder::kRandom:
      break;
  }
  return candidates[random_() % candidates.size()];
}

}  // namespace lockstep::emulation
