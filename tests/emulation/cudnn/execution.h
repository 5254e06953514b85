// One execution of a plan of the emulated cuDNN: checks the memory and queues the work on the
// stream.
#pragma once

#include <map>
#include <memory>

#include "tests/emulation/cudnn/convolution.h"
#include "tests/emulation/cudnn/descriptor.h"

struct CUstream_st;

namespace lockstep::emulation {

class CudnnExecution {
 public:
  // Requires: both descriptors are finalized. Errors: CudnnRefusal if an operand is missing, is not
  // in memory of `device` with the right size and alignment, or overlaps memory that is written.
  // The workspace is checked likewise.
  CudnnExecution(const BackendDescriptor& plan, const BackendDescriptor& pack, int device);

  // Queues the work on the stream in as many steps as the engine has. The first step reads the
  // operands and the last writes the results, each when it runs. The workspace holds garbage before
  // the first step, and parts of sums between the first step and the last. Errors: CudnnRefusal.
  static void queue(std::shared_ptr<CudnnExecution> execution, CUstream_st& stream);

  const char* name() const;  // of the computation

 private:
  void find_operands(const BackendDescriptor& pack);
  void check_memory() const;
  void check_overlaps() const;
  void begin() const;
  void end() const;
  void all_at_once() const;
  void corrupt_result() const;
  Convolution::Rounding rounding() const;
  CudnnPlaces places() const;
  // The bytes around the workspace that belong to its allocation and to no result.
  std::vector<std::byte> surroundings() const;
  // Runs `body` and checks that it leaves the bytes around the workspace unchanged. Errors: Fault.
  template <class Body>
  void guarded(Body&& body) const;

  std::shared_ptr<const Convolution> work_;
  CudnnEngine engine_;
  int device_;
  std::map<int64_t, std::byte*> operands_ = {};  // by uid
  std::byte* workspace_ = nullptr;
  size_t workspace_bytes_;
};

}  // namespace lockstep::emulation
