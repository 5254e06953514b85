// Copies a training's state between two steps, so that it can be written while training goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/cuda/stream.h"
#include "core/error.h"
#include "core/folder.h"
#include "core/stream.h"
#include "core/tensor.h"
#include "engine/state/state_tensors.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "trainers/checkpoint/checkpoint_record.h"

namespace lockstep::trainers {

// Borrowed. `stream` is that of the steps: on the CPU its threads copy, and a GPU copies in its
// order.
struct SnapshotSource {
  Stream& stream;
  const nn::Module& model;
  const nn::Optimizer& optimizer;
};

// All tensors are parts of `memory`, which is kept from one snapshot to the next.
struct Snapshot {
  CheckpointRecord record;
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
void take_snapshot(const SnapshotSource& source, CheckpointRecord record, Snapshot& snapshot);

// Whether the copies are done. wait_for() waits for them. Call both on the thread that took the
// snapshot.
bool is_there(const Snapshot& snapshot);
void wait_for(const Snapshot& snapshot);

// Permutes all tensors to the files' order, in place; a second call changes nothing. Requires:
// is_there(). May run on any thread, as the function below. Errors: EnvironmentError.
void put_in_file_order(Snapshot& snapshot);

// Writes both files of the checkpoint, as write_checkpoint() does, with names from its step.
void write_snapshot(const Folder& folder, Snapshot& snapshot);

// The files that a save writes, in this order. best.safetensors and ema.safetensors hold weights
// and buffers, and --keep does not count them.
struct SavedFiles {
  bool average = false;     // ema.safetensors: of the moving average. Requires: an nn::Ema
  bool best = false;        // best.safetensors; before the checkpoint whose record counts on it
  bool checkpoint = false;  // stepN.safetensors and its state; last.safetensors links to it

  bool any() const { return average || best || checkpoint; }
  // The names of the files; the checkpoint has its model's name.
  std::vector<std::string> names(int64_t step) const;
};

struct SaveReport {
  struct Failure {
    std::string what;
    EnvironmentError error;
  };
  std::filesystem::path folder;
  std::vector<Failure> unsaved;    // by name
  std::vector<Failure> untidy;     // work that failed after a successful save
  bool folder_is_removed = false;  // the likely cause of `unsaved`
};

// Writes the files and, once its own checkpoint is complete, removes all but the `keep` newest
// ones. A model leaves the folder only when newer checkpoints are complete. Any thread may call
// this; nothing else may use the snapshot meanwhile.
SaveReport save_files(const Folder& folder,
                      const SavedFiles& files,
                      int64_t keep,
                      Snapshot& snapshot);

// Removes all checkpoints but the `keep` newest up to `step`. Also removes those after `step`,
// which an abandoned continuation made. A model that cannot be removed keeps its state, because a
// model alone would stay forever. Errors: EnvironmentError.
void remove_superseded(const Folder& folder, int64_t step, int64_t keep);

// Removes what a killed process left: unfinished writes, and states whose model never took its
// place. Requires: no other process writes there. Errors: EnvironmentError.
void remove_leftovers(const Folder& folder);

}  // namespace lockstep::trainers
