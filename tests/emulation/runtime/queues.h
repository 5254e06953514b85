// Streams as queues of work, and the order in which that work runs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include <driver_types.h>

#include "tests/emulation/runtime/fake_runtime.h"

namespace lockstep::emulation {

// A point in a stream's order. Each cudaEventRecord makes a new one.
struct Point {
  bool passed = false;
  uint64_t time = 0;  // number of operations that had run by then
};

struct GraphNode {
  std::function<void()> run;
  std::vector<size_t> after;         // predecessors
  std::function<bool()> ready = {};  // polled once it is the node's turn; empty: always ready
  int priority = 0;                  // of the stream from which it was captured
};
using GraphNodes = std::vector<GraphNode>;

// Waits for a point, runs nodes and passes a point, in this order; each part is optional.
struct Operation {
  std::shared_ptr<Point> waits = {};
  std::shared_ptr<const GraphNodes> nodes = {};
  std::shared_ptr<Point> passes = {};
  std::vector<bool> ran = {};
  std::optional<int> priority = {};  // for all nodes; nothing: each has its own
};

struct Capture;

}  // namespace lockstep::emulation

struct CUstream_st {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  int number = 0;
  bool destroyed = false;  // by the program; queued work still runs
  std::deque<lockstep::emulation::Operation> queue = {};
  std::shared_ptr<lockstep::emulation::Capture> capture = {};
  std::vector<size_t> after = {};  // predecessors of its next node in the capture
};

namespace lockstep::emulation {

class Queues {
 public:
  CUstream_st& create(int device, unsigned flags, int priority);
  void destroy(CUstream_st& stream);
  // Null for an unknown handle.
  CUstream_st* find(cudaStream_t handle);
  const std::vector<std::unique_ptr<CUstream_st>>& streams() const { return streams_; }
  void clear();
  void set_order(StreamOrder order, uint64_t seed);

  // Adds an operation. The legacy default stream waits for all blocking streams, and they wait for
  // it.
  void push(CUstream_st& stream, Operation operation);

  // These run the necessary work until `stream` is empty, `point` has passed, or all streams are
  // empty.
  void finish(CUstream_st& stream);
  void finish(const Point& point);
  void finish_all();
  // Run one step toward that; enough calls reach it.
  void advance(CUstream_st& stream);
  void advance(const Point& point);

 private:
  CUstream_st& passer_of(const Point& point);
  void follow(CUstream_st& later, CUstream_st& earlier);
  bool run_any();
  bool run_one(CUstream_st& stream);  // false: the next operation is not ready
  size_t pick_node(const Operation& operation, const std::vector<size_t>& candidates);

  CUstream_st default_stream_;
  std::vector<std::unique_ptr<CUstream_st>> streams_;  // in order of creation
  StreamOrder order_ = StreamOrder::kEager;
  std::mt19937_64 random_;
  uint64_t eagerness_ = 0;  // of the seed: operations that may run when one is queued
  uint64_t clock_ = 0;
  int created_ = 0;
};

}  // namespace lockstep::emulation
