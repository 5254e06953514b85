// The place where ranks share memory: what differs between processes and threads.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/operation.h"

namespace lockstep::comm {

// Memory with a part for each rank, all of which this rank can reach.
struct Segment {
  std::shared_ptr<void> memory;   // keeps the parts reachable
  std::vector<std::byte*> parts;  // by rank; 64-byte aligned
  size_t bytes = 0;               // of a part
};

// A rank's access to it. Thread safety: for that rank's thread alone.
class SharedHost {
 public:
  SharedHost() = default;
  SharedHost(const SharedHost&) = delete;
  SharedHost& operator=(const SharedHost&) = delete;
  virtual ~SharedHost() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // True when the ranks cannot all have a core of their own.
  virtual bool shares_cores() const = 0;

  // Zeros. A collective call: the k-th on each rank gives the same memory, with as many bytes.
  // `operation` is for errors. Errors: EnvironmentError when memory runs out; CommError.
  virtual Segment allocate(size_t bytes_per_rank, const Operation& operation) = 0;

  // Becomes true soon after a rank has ended, however it ended. What the rank wrote before is
  // visible then.
  virtual bool is_gone(int rank) = 0;
};

}  // namespace lockstep::comm
