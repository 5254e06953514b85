// Streams as queues of work, and in what order that work runs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include <driver_types.h>

#include "tests/emulation/runtime/fake_runtime.h"

namespace lockstep::emulation {

// A point in a stream's order, a new one for each cudaEventRecord.
struct Point {
  bool passed = false;
  uint64_t time = 0;  // operations that had run by then
};

struct GraphNode {
  std::function<void()> run;
  std::vector<size_t> after;         // these nodes
  std::function<bool()> ready = {};  // asked when its turn has come; empty: it is
};
using GraphNodes = std::vector<GraphNode>;

// Waits for a point, runs nodes, passes a point; each may be missing.
struct Operation {
  std::shared_ptr<Point> waits = {};
  std::shared_ptr<const GraphNodes> nodes = {};
  std::shared_ptr<Point> passes = {};
  std::vector<bool> ran = {};
};

struct Capture;

}  // namespace lockstep::emulation

struct CUstream_st {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  int number = 0;
  bool destroyed = false;  // by the program; its work still runs
  std::deque<lockstep::emulation::Operation> queue = {};
  std::shared_ptr<lockstep::emulation::Capture> capture = {};
  std::vector<size_t> after = {};  // nodes of the capture that its next one follows
};

namespace lockstep::emulation {

class Queues {
 public:
  CUstream_st& create(int device, unsigned flags, int priority);
  void destroy(CUstream_st& stream);
  // Null for a handle that is none.
  CUstream_st* find(cudaStream_t handle);
  const std::vector<std::unique_ptr<CUstream_st>>& streams() const { return streams_; }
  void clear();
  void set_order(StreamOrder order, uint64_t seed);

  // The legacy default stream follows all blocking streams, and they follow it.
  void push(CUstream_st& stream, Operation operation);

  // Run what is needed until all in `stream` has run, `point` is passed, or everything has run.
  void finish(CUstream_st& stream);
  void finish(const Point& point);
  void finish_all();
  // One step toward it: a caller that asks again and again gets there.
  void advance(CUstream_st& stream);
  void advance(const Point& point);

 private:
  CUstream_st& passer_of(const Point& point);
  void follow(CUstream_st& later, CUstream_st& earlier);
  bool run_any();
  bool run_one(CUstream_st& stream);  // false: what comes next is not ready
  size_t pick_node(const std::vector<size_t>& candidates);

  CUstream_st default_stream_;
  std::vector<std::unique_ptr<CUstream_st>> streams_;  // in order of creation
  StreamOrder order_ = StreamOrder::kEager;
  std::mt19937_64 random_;
  uint64_t eagerness_ = 0;  // of a seed: operations that run at most when one is queued
  uint64_t clock_ = 0;
  int created_ = 0;
};

}  // namespace lockstep::emulation
