// A training's state between two steps, copied to memory of its own: it is written while training
// goes on.
#pragma once

#include <optional>
#include <vector>

#include "core/cuda/stream.h"
#include "core/folder.h"
#include "core/stream.h"
#include "core/tensor.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "trainers/checkpoint/checkpoint_record.h"
#include "trainers/checkpoint/state_tensors.h"

namespace lockstep::trainers {

// Borrowed. The steps' stream: its threads copy, and a GPU copies in its order.
struct SnapshotSource {
  Stream& stream;
  const nn::Module& model;
  const nn::Optimizer& optimizer;
};

// All tensors are parts of `memory`, which is kept from one snapshot to the next.
struct Snapshot {
  CheckpointRecord record;
  FileTensors model, optimizer;
  std::vector<Tensor> channels_last;  // those among them that files hold in another order
  Tensor memory;                      // (bytes), u8, on the host
  std::optional<cuda::Event> copied;  // of a GPU's state: the end of the copies
};

// Gives the snapshot memory for the source's state where it has less, page-locked for a GPU, and
// touches it: the first copy is as fast as the later ones. Errors: EnvironmentError.
void reserve_memory(const SnapshotSource& source, Snapshot& snapshot);

// Replaces the snapshot by the source's state. Of a GPU's state the copies are queued: steps after
// this one come later in the stream's order, and `memory` must not be used until is_there().
// Errors: EnvironmentError, CudaError.
void take_snapshot(const SnapshotSource& source, CheckpointRecord record, Snapshot& snapshot);

// Whether the copies are done; wait_for() waits for them. On the thread that took the snapshot.
bool is_there(const Snapshot& snapshot);
void wait_for(const Snapshot& snapshot);

// Puts all tensors in the files' order, in place; a second call changes nothing. Requires:
// is_there(). Any thread, as the function below. Errors: EnvironmentError.
void put_in_file_order(Snapshot& snapshot);

// Writes both files of the checkpoint, as write_checkpoint() does, named after its step.
void write_snapshot(const Folder& folder, Snapshot& snapshot);

}  // namespace lockstep::trainers
