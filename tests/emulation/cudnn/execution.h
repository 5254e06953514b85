// An execution of a plan of the emulated machine's cuDNN: its memory is checked, and its stream
// gets the work.
#pragma once

#include <map>
#include <memory>

#include "tests/emulation/cudnn/convolution.h"
#include "tests/emulation/cudnn/descriptor.h"

struct CUstream_st;

namespace lockstep::emulation {

class CudnnExecution {
 public:
  // Requires: both are finalized. Errors: CudnnRefusal where an operand is missing, or not in
  // memory of `device` of that size and alignment, or overlaps what is written; so for the
  // workspace.
  CudnnExecution(const BackendDescriptor& plan, const BackendDescriptor& pack, int device);

  // Gives the work to the stream, in as many steps as the engine has. Operands are read and written
  // when it runs, the first step by the first and the last by the last of them; the workspace holds
  // garbage before, and parts of sums from the first to the last. Errors: CudnnRefusal.
  static void queue(std::shared_ptr<CudnnExecution> execution, CUstream_st& stream);

  const char* name() const;  // of what it computes

 private:
  void find_operands(const BackendDescriptor& pack);
  void check_memory() const;
  void check_overlaps() const;
  void begin() const;
  void end() const;
  void all_at_once() const;
  void spoil() const;
  Convolution::Rounding rounding() const;
  CudnnPlaces places() const;
  // The bytes around the workspace, as far as they are of its block and no result.
  std::vector<std::byte> surroundings() const;
  // Runs `body`, which must leave what lies around the workspace alone. Errors: Fault.
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
