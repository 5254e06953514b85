// Copies a training's state between two steps, so that it can be written while training goes on.
#pragma once

#include <optional>
#include <vector>

#include "core/cuda/stream.h"
#include "core/stream.h"
#include "core/tensor.h"
#include "engine/state/state_tensors.h"
#include "nn/module.h"
#include "nn/optimizer.h"

namespace lockstep {

// Borrowed. `stream` is that of the steps: on the CPU its threads copy, and a GPU copies in its
// order.
struct SnapshotSource {
  Stream& stream;
  const nn::Module& model;
  const nn::Optimizer& optimizer;
};

// All tensors are parts of `memory`, which is kept from one snapshot to the next.
struct Snapshot {
  FileTensors model, optimizer;
  std::vector<Tensor> channels_last;  // those among them whose order differs in files
  Tensor memory;                      // (bytes), u8, on the host
  std::optional<cuda::Event> copied;  // on a GPU: the end of the copies
};

// Grows the snapshot's memory to the size of the source's state; the memory is page-locked for a
// GPU. Touches the memory, so that the first copy is as fast as later ones. Errors:
// EnvironmentError.
void reserve_memory(const SnapshotSource& source, Snapshot& snapshot);

// Replaces the snapshot with the source's state. On a GPU the copies are only queued: later steps
// come after them in the stream's order, and `memory` must not be used until is_there(). Errors:
// EnvironmentError, CudaError.
void take_snapshot(const SnapshotSource& source, Snapshot& snapshot);

// Whether the copies are done. wait_for() waits for them. Call both on the thread that took the
// snapshot.
bool is_there(const Snapshot& snapshot);
void wait_for(const Snapshot& snapshot);

// Permutes all tensors to the files' order, in place; a second call changes nothing. Requires:
// is_there(). May run on any thread. Errors: EnvironmentError.
void put_in_file_order(Snapshot& snapshot);

}  // namespace lockstep
