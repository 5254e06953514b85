// Loads batches ahead of the steps that need them.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/augmentation.h"
#include "core/shards.h"
#include "core/tensor.h"
#include "data/batch_plan.h"
#include "data/dataset.h"
#include "data/load_seconds.h"

#pragma GCC visibility push(default)
namespace lockstep {
class ForkCheck;
class Timeline;
}  // namespace lockstep

namespace lockstep::data {

struct SkippedImage {
  int64_t index = 0;  // in the data set
  std::string why;    // "ants/1.jpg: the file is empty"
};

// The number of images that may be skipped: a thousandth of the data set, but at least ten, and
// never all.
inline int64_t skip_limit(int64_t dataset_size) {
  return std::min(std::max<int64_t>(10, dataset_size / 1000), dataset_size - 1);
}

struct LoadedBatch {
  int64_t number = 0;  // index in the sequence
  Tensor images;       // u8 or f32 (N,C,H,W), of the epoch's training_shape()
  Tensor labels;       // i32 (N), or targets: f32 (N,target_size())
  // i64 (N), of the images that were read: index in the data set, plus the data set's size for each
  // time that the image was shown before in this epoch.
  Tensor indices;
  Tensor numbers;  // i64 (N), epoch * repeats * size of the data set + index
  Tensor boxes;    // i32 (N,4), regions to erase: not filled by the loader
  int64_t epoch = 0;
  Shards shards;
  std::vector<SkippedImage> skipped;  // each image once
};

// Totals up to the batch that was taken last.
struct LoaderSeconds {
  double waited = 0;  // in next(), without the first call, before which no batch could be ready
  LoadSeconds work;   // sum over all workers

  LoaderSeconds& operator+=(const LoaderSeconds& other) {
    waited += other.waited;
    work += other.work;
    return *this;
  }
  LoaderSeconds operator-(const LoaderSeconds& other) const {
    return {.waited = waited - other.waited, .work = work - other.work};
  }
};

inline constexpr int kMaxWorkers = 256;

struct LoaderOptions {
  int workers = 2;    // threads, at most kMaxWorkers; 0: next() makes the batch itself
  int64_t ahead = 4;  // batches being made or waiting, at most
  Augmentation augmentation = {};
  Timeline* timeline = nullptr;  // outlives the loader; null: times are not recorded
};

// Yields the batches of a sequence in order; workers and ahead do not change their bytes. An image
// that cannot be read is replaced, with its label, by the next one that can. When a batch skips
// more than skip_limit() images, the rest of it is black and it must not be used. Memory for
// `ahead` batches, and two that the caller holds, is allocated at construction, so that later
// batches find it in the caching allocator. Idle workers sleep.
// Thread safety: one consumer. Owns its threads; destroying a loader early stops them after the
// current image.
class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> dataset,
         BatchSequence batches,
         const LoaderOptions& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();

  // The number of batches that were not taken yet.
  int64_t left() const { return plans_.batches.count - taken_; }
  // Returns the next batch. Errors: what the data set or the sequence threw for this batch; calling
  // it again throws the same. UsageError in a forked child of the process whose workers load.
  // Requires: left() > 0.
  LoadedBatch next();

  // Time that next() spent waiting for a batch, or making it when there are no workers.
  double waited_seconds() const { return waited_seconds_; }
  // Time that next() waited, all calls but the first, and that the loader itself worked.
  const LoaderSeconds& seconds() const { return seconds_; }

 private:
  struct Job {
    int64_t number = 0;
    MicroBatch plan;
    std::exception_ptr error;
  };
  // The source of the workers' jobs.
  struct Plans {
    BatchSequence batches;
    int64_t planned = 0;
    std::mutex mutex = {};  // guards batches.at and planned
  };
  struct Workers {
    std::vector<std::thread> threads;
    std::unique_ptr<const ForkCheck> fork;
  };
  struct Slot {
    LoadedBatch batch;
    LoadSeconds work;
    std::exception_ptr error;
    bool ready = false;
  };

  void work(int worker);
  void stop();                         // joins all threads that were started
  std::optional<Job> next_job();       // nothing when all are planned
  bool wait_for_room(int64_t number);  // false when the loader is being destroyed
  Slot run(Job job);
  LoadedBatch load(int64_t number, MicroBatch plan);
  void read_labels(LoadedBatch& batch) const;
  int64_t read_image(int64_t view, std::span<uint8_t> pixels, LoadedBatch& batch) const;
  Slot& slot_of(int64_t number) {
    return slots_[static_cast<size_t>(number % static_cast<int64_t>(slots_.size()))];
  }

  std::shared_ptr<const Dataset> dataset_;
  Plans plans_;
  const LoaderOptions options_;
  double waited_seconds_ = 0;
  LoaderSeconds seconds_;

  std::mutex mutex_;  // guards the slots and taken_, which only the consumer writes
  std::condition_variable room_;
  std::condition_variable ready_;
  std::vector<Slot> slots_;
  int64_t taken_ = 0;
  std::atomic<bool> stopping_ = false;
  Workers workers_;
};

}  // namespace lockstep::data
#pragma GCC visibility pop
