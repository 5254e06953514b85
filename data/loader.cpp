#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "core/check.h"
#include "core/error.h"
#include "core/fork_check.h"
#include "data/codecs/decode_image.h"
#include "data/load_span.h"

namespace lockstep::data {
namespace {

constexpr int64_t kBatchesInUse = 2;  // by the caller: one in the step, one just taken

Shape shape_of(const ImageShape& image, int64_t images) {
  return {images, image.channels, image.height, image.width};
}

Tensor empty_labels(const Dataset& dataset, int64_t images) {
  const int64_t values = dataset.target_size();
  return values == 0 ? Tensor::empty({images}, Dtype::kI32)
                     : Tensor::empty({images, values}, Dtype::kF32);
}

// Fills the caching allocator with blocks of the largest batch's size.
void reserve_memory(const Dataset& dataset, int64_t max_images, int64_t batches) {
  std::vector<Tensor> reserved;
  for (int64_t i = 0; i < batches; ++i) {
    reserved.push_back(Tensor::empty(shape_of(dataset.image_shape(), max_images), dataset.dtype()));
    reserved.push_back(empty_labels(dataset, max_images));
    reserved.push_back(Tensor::empty({max_images}, Dtype::kI64));  // indices
    reserved.push_back(Tensor::empty({max_images}, Dtype::kI64));  // numbers
  }
}

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> dataset,
               BatchSequence batches,
               const LoaderOptions& options)
    : dataset_(std::move(dataset)), plans_{.batches = std::move(batches)}, options_(options) {
  workers_.fork = std::make_unique<ForkCheck>();
  if (options.workers > kMaxWorkers) {
    throw UsageError(fmt::format("{} workers cannot be started", options.workers),
                     "each is a thread that reads images",
                     fmt::format("at most {} workers", kMaxWorkers));
  }
  LS_CHECK(options.workers >= 0 && options.ahead >= 1,
           "[loader] got {} workers, {} batches ahead",
           options.workers,
           options.ahead);
  const ImageShape image = dataset_->image_shape();
  LS_CHECK(pad_fits(options.augmentation, image.height, image.width),
           "[loader] pad: got {} for images of {} x {}",
           options.augmentation.pad,
           image.height,
           image.width);
  const int64_t ahead = options.workers == 0 ? 0 : options.ahead;
  reserve_memory(*dataset_, plans_.batches.max_images, ahead + kBatchesInUse);
  slots_.resize(static_cast<size_t>(ahead));
  try {
    for (int i = 0; i < options.workers; ++i) workers_.threads.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    stop();
    throw EnvironmentError(
        fmt::format("cannot start loader {} of {}", workers_.threads.size() + 1, options.workers),
        error.what(),
        "fewer workers, or higher limits (ulimit -u, ulimit -v)");
  }
}

Loader::~Loader() {
  stop();
}

void Loader::stop() {
  if (workers_.fork->is_in_child()) {
    abandon(workers_.threads);
    // Their destructors would wait for the workers.
    std::construct_at(&room_);
    std::construct_at(&ready_);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& worker : workers_.threads) worker.join();
}

LoadedBatch Loader::next() {
  LS_CHECK(left() > 0, "[loader] next: got {} batches already, all there are", taken_);
  const TimelineSpan span(options_.timeline, kLoaderWaitSpan, taken_);
  const auto start = std::chrono::steady_clock::now();
  const auto stop_clock = [&] {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    waited_seconds_ += seconds;
    if (taken_ > 0) seconds_.waited += seconds;
  };
  if (workers_.threads.empty()) {
    Slot slot = run({.number = taken_, .plan = plans_.batches.at(taken_), .error = {}});
    if (slot.error) std::rethrow_exception(slot.error);
    stop_clock();
    seconds_.work += slot.work;
    ++taken_;
    return std::move(slot.batch);
  }
  workers_.fork->expect_parent("a Loader with workers");
  LoadedBatch batch;
  {
    std::unique_lock lock(mutex_);
    Slot& slot = slot_of(taken_);
    ready_.wait(lock, [&] { return slot.ready; });
    stop_clock();
    if (slot.error) std::rethrow_exception(slot.error);
    seconds_.work += slot.work;
    batch = std::exchange(slot, {}).batch;
    ++taken_;
  }
  room_.notify_all();
  return batch;
}

void Loader::work(int worker) {
  load_record() = {.timeline = options_.timeline,
                   .lane = {.kind = TimelineLane::Kind::kLoader, .index = worker}};
  while (std::optional<Job> job = next_job()) {
    const int64_t number = job->number;
    if (!wait_for_room(number)) return;
    Slot slot = run(std::move(*job));
    {
      const std::lock_guard lock(mutex_);
      slot_of(number) = std::move(slot);
    }
    ready_.notify_one();
  }
}

std::optional<Loader::Job> Loader::next_job() {
  const std::lock_guard lock(plans_.mutex);
  if (plans_.planned == plans_.batches.count) return std::nullopt;
  Job job{.number = plans_.planned++, .plan = {}, .error = {}};
  try {
    job.plan = plans_.batches.at(job.number);
  } catch (...) {
    job.error = std::current_exception();
  }
  return job;
}

bool Loader::wait_for_room(int64_t number) {
  std::unique_lock lock(mutex_);
  room_.wait(lock,
             [&] { return stopping_ || number < taken_ + static_cast<int64_t>(slots_.size()); });
  return !stopping_;
}

Loader::Slot Loader::run(Job job) {
  Slot slot{.batch = {}, .work = {}, .error = job.error, .ready = true};
  if (slot.error) return slot;
  const LoadSeconds before = load_seconds();
  double all = 0;
  try {
    const LoadClock clock(all);
    const LoadSpan span("batch", job.number);
    slot.batch = load(job.number, std::move(job.plan));
  } catch (...) {
    slot.error = std::current_exception();
  }
  slot.work = load_seconds() - before;
  slot.work.augment = all - slot.work.disk - slot.work.decode;
  return slot;
}

LoadedBatch Loader::load(int64_t number, MicroBatch plan) {
  const ImageShape image = dataset_->training_shape(plan.epoch);
  const auto images = static_cast<int64_t>(plan.images.size());
  const int64_t most_values = plans_.batches.max_images * dataset_->image_shape().numel();
  // All batches allocate blocks of the same size, of which they use a part, so that each finds one
  // in the allocator.
  LoadedBatch batch{
      .number = number,
      .images = Tensor::empty({most_values}, dataset_->dtype())
                    .slice(0, images * image.numel())
                    .view(shape_of(image, images)),
      .labels = empty_labels(*dataset_, plans_.batches.max_images).slice(0, images),
      .indices = Tensor::empty({plans_.batches.max_images}, Dtype::kI64).slice(0, images),
      .numbers = Tensor::empty({plans_.batches.max_images}, Dtype::kI64).slice(0, images),
      .boxes = {},
      .epoch = plan.epoch,
      .shards = std::move(plan.shards),
      .skipped = {}};
  const size_t bytes = static_cast<size_t>(image.numel()) * size_of(dataset_->dtype());
  auto* index = batch.indices.data<int64_t>();
  auto* image_number = batch.numbers.data<int64_t>();
  auto* pixels = reinterpret_cast<uint8_t*>(batch.images.bytes());
  for (const int64_t i : plan.images) {
    if (stopping_.load(std::memory_order_relaxed)) break;
    *index = read_image(i, {pixels, bytes}, batch);
    *image_number++ = batch.epoch * plans_.batches.repeats * dataset_->size() + *index++;
    pixels += bytes;
  }
  read_labels(batch);
  return batch;
}

void Loader::read_labels(LoadedBatch& batch) const {
  const int64_t size = dataset_->size(), values = dataset_->target_size();
  const std::span<const int64_t> indices = std::as_const(batch.indices).span<int64_t>();
  if (stopping_.load(std::memory_order_relaxed)) return;  // not all of them were written
  for (size_t n = 0; n < indices.size(); ++n) {
    if (values == 0) {
      batch.labels.data<int32_t>()[n] = dataset_->label(indices[n] % size);
    } else {
      const std::span<float> targets = batch.labels.span<float>();
      const auto count = static_cast<size_t>(values);
      dataset_->read_target(indices[n] % size, targets.subspan(n * count, count));
    }
  }
}

// Returns the view that was read, which is another image's if this one cannot be read.
int64_t Loader::read_image(int64_t view, std::span<uint8_t> pixels, LoadedBatch& batch) const {
  const int64_t size = dataset_->size();
  const auto limit = static_cast<size_t>(skip_limit(size));
  const int64_t first_view = view / size * size;
  int64_t i = view % size;
  for (; batch.skipped.size() <= limit; i = (i + 1) % size) {
    try {
      dataset_->read_for_training(first_view + i, batch.epoch, options_.augmentation, pixels);
      return first_view + i;
    } catch (const UnreadableImage& error) {
      if (std::ranges::find(batch.skipped, i, &SkippedImage::index) == batch.skipped.end()) {
        batch.skipped.push_back({.index = i, .why = error.why()});
      }
    }
  }
  std::ranges::fill(pixels, uint8_t{0});
  return first_view + i;
}

}  // namespace lockstep::data
