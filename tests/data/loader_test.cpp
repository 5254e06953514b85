#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/allocator.h"
#include "core/error.h"
#include "data/dataset.h"
#include "data/synthetic.h"
#include "tests/support/close.h"

namespace lockstep::data::loader_test {
namespace {

using testing::same_bits;
using Bytes = std::vector<uint8_t>;

std::shared_ptr<const Dataset> images(int64_t count = 50) {
  return std::make_shared<Synthetic>(
      Synthetic::Options{.images = count, .classes = 7, .shape = {3, 4, 5}, .seed = 3});
}

// Three epochs and a bit, short last steps and empty shards included.
BatchSequence sequence() {
  return training_sequence(
      {.dataset_size = 50, .global_batch = 16, .micro_steps = 2, .shards = 6, .groups = 1}, 1, 15);
}

// Fails at one image.
class Broken : public Synthetic {
 public:
  using Synthetic::Synthetic;
  void read(int64_t i, std::span<uint8_t> pixels) const override {
    if (i == 5) throw DataError("image 5 is broken");
    Synthetic::read(i, pixels);
  }
};

// Takes its time.
class Slow : public Synthetic {
 public:
  using Synthetic::Synthetic;
  void read(int64_t i, std::span<uint8_t> pixels) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    Synthetic::read(i, pixels);
  }
};

class LoaderWorkers : public ::testing::TestWithParam<int> {};

TEST_P(LoaderWorkers, YieldsTheSequenceInOrder) {
  for (const int64_t ahead : {1, 2, 5}) {
    const std::shared_ptr<const Dataset> dataset = images();
    Loader loader(dataset, sequence(), {.workers = GetParam(), .ahead = ahead});
    BatchSequence want = sequence();
    ASSERT_EQ(loader.left(), want.count);
    for (int64_t number = 0; number < want.count; ++number) {
      const LoadedBatch batch = loader.next();
      const MicroBatch plan = want.at(number);
      ASSERT_EQ(batch.number, number);
      const auto count = static_cast<int64_t>(plan.images.size());
      ASSERT_EQ(batch.images.shape(), Shape({count, 3, 4, 5}));
      ASSERT_EQ(batch.labels.shape(), Shape({count}));
      EXPECT_EQ(batch.shards.offsets, plan.shards.offsets);
      EXPECT_EQ(batch.shards.step_images, plan.shards.step_images);
      Tensor expected = Tensor::empty({count, 3, 4, 5}, Dtype::kU8);
      for (int64_t row = 0; row < count; ++row) {
        const int64_t image = plan.images[static_cast<size_t>(row)];
        Tensor slice = expected.slice(row, 1);
        dataset->read(image, slice.span<uint8_t>());
        EXPECT_EQ(batch.labels.data<int32_t>()[row], dataset->label(image));
        EXPECT_EQ(batch.numbers.data<int64_t>()[row], plan.epoch * 50 + image);
      }
      EXPECT_TRUE(same_bits(batch.images, expected));
    }
    EXPECT_EQ(loader.left(), 0);
    EXPECT_THROW(loader.next(), InternalError);
  }
}

TEST_P(LoaderWorkers, ViewsOfAnImageHaveItsLabelAndNumbersOfTheirOwn) {
  const std::shared_ptr<const Dataset> dataset = images();
  const BatchPlan plan{.dataset_size = 50, .global_batch = 10, .repeats = 2};
  Loader loader(dataset, training_sequence(plan, 0, 10), {.workers = GetParam()});
  std::set<int64_t> numbers;  // of two epochs
  while (loader.left() > 0) {
    const LoadedBatch batch = loader.next();
    for (int64_t row = 0; row < 10; ++row) {
      const int64_t view = batch.indices.data<int64_t>()[row];
      EXPECT_EQ(batch.labels.data<int32_t>()[row], dataset->label(view % 50));
      EXPECT_EQ(batch.numbers.data<int64_t>()[row], batch.epoch * 100 + view);
      numbers.insert(batch.numbers.data<int64_t>()[row]);
    }
  }
  EXPECT_EQ(numbers.size(), 100U);
}

TEST_P(LoaderWorkers, AsksTheSystemForMemoryOnlyAtTheStart) {
  // A size of its own, so that no other test has left blocks of it in the allocator.
  const ImageShape shape{.channels = 1, .height = 100, .width = 100 * (GetParam() + 1)};
  const auto dataset = std::make_shared<Synthetic>(Synthetic::Options{.images = 7, .shape = shape});
  const BatchPlan plan{.dataset_size = 7, .global_batch = 3};
  Loader loader(dataset, training_sequence(plan, 0, 12), {.workers = GetParam(), .ahead = 3});
  const int64_t before = cpu_allocator().stats().system_allocations;
  LoadedBatch previous;
  while (loader.left() > 0) {
    LoadedBatch batch = loader.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // the workers fill the queue
    previous = std::move(batch);
  }
  EXPECT_EQ(cpu_allocator().stats().system_allocations, before);
}

TEST_P(LoaderWorkers, RethrowsAnErrorAtItsBatch) {
  const auto dataset =
      std::make_shared<Broken>(Synthetic::Options{.images = 50, .shape = {1, 1, 1}});
  const BatchPlan plan{.dataset_size = 50, .global_batch = 2, .shuffle = false};
  Loader loader(dataset, training_sequence(plan, 0, 25), {.workers = GetParam(), .ahead = 4});
  EXPECT_EQ(loader.next().number, 0);
  EXPECT_EQ(loader.next().number, 1);
  EXPECT_THROW(loader.next(), DataError);  // images 4 and 5
  EXPECT_THROW(loader.next(), DataError);
}

TEST_P(LoaderWorkers, RethrowsAnErrorOfTheSequence) {
  BatchSequence broken = sequence();
  broken.at = [at = broken.at](int64_t number) {
    if (number == 1) throw DataError("no batch 1");
    return at(number);
  };
  Loader loader(images(), broken, {.workers = GetParam(), .ahead = 2});
  EXPECT_EQ(loader.next().number, 0);
  EXPECT_THROW(loader.next(), DataError);
}

TEST_P(LoaderWorkers, StopsEarly) {
  const auto dataset =
      std::make_shared<Slow>(Synthetic::Options{.images = 1000, .shape = {1, 1, 1}});
  const auto start = std::chrono::steady_clock::now();
  for (const auto& [batch_images, taken] : {std::pair(1000, 0), std::pair(2, 1)}) {
    const BatchPlan plan{.dataset_size = 1000, .global_batch = batch_images};
    Loader loader(dataset,
                  training_sequence(plan, 0, steps_per_epoch(plan)),
                  {.workers = GetParam(), .ahead = 8});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the workers are in mid-batch
    for (int i = 0; i < taken; ++i) loader.next();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST_P(LoaderWorkers, MeasuresHowLongItsCallerWaits) {
  const auto dataset = std::make_shared<Slow>(Synthetic::Options{.images = 4, .shape = {1, 1, 1}});
  Loader loader(dataset,
                training_sequence({.dataset_size = 4, .global_batch = 4}, 0, 1),
                {.workers = GetParam(), .ahead = 1});
  EXPECT_EQ(loader.waited_seconds(), 0);
  const auto start = std::chrono::steady_clock::now();
  loader.next();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_LE(loader.waited_seconds(), elapsed.count());
  EXPECT_GE(loader.waited_seconds(), elapsed.count() - 0.02);
}

INSTANTIATE_TEST_SUITE_P(Workers, LoaderWorkers, ::testing::Values(0, 1, 3));

TEST_P(LoaderWorkers, ChangesImagesByEpochAndIndex) {
  const std::shared_ptr<const Dataset> dataset = images();
  const Augmentation augmentation{.pad = 2, .flip = Flip::kRandom, .seed = 11};
  for (const int64_t ahead : {1, 5}) {
    Loader loader(
        dataset, sequence(), {.workers = GetParam(), .ahead = ahead, .augmentation = augmentation});
    const BatchSequence want = sequence();
    std::set<int64_t> epochs;
    Bytes original(60);
    Bytes expected(60);
    for (int64_t number = 0; number < want.count; ++number) {
      const LoadedBatch batch = loader.next();
      const MicroBatch plan = want.at(number);
      epochs.insert(plan.epoch);
      for (size_t row = 0; row < plan.images.size(); ++row) {
        const int64_t image = plan.images[row];
        dataset->read(image, original);
        const CropFlip change = draw_crop_flip(augmentation, plan.epoch, image);
        crop_flip(dataset->image_shape(), augmentation, change, original, expected);
        const Tensor got = batch.images.slice(static_cast<int64_t>(row), 1);
        ASSERT_TRUE(std::ranges::equal(got.span<const uint8_t>(), expected)) << number << row;
      }
    }
    EXPECT_EQ(epochs, (std::set<int64_t>{0, 1, 2, 3}));
  }
}

TEST(Loader, AnImageDoesNotDependOnRanksOrBatches) {
  // By epoch and image: however many ranks, groups and micro-steps deal them.
  std::map<std::pair<int64_t, int64_t>, Bytes> seen;
  const std::shared_ptr<const Dataset> dataset = images(48);
  for (const BatchPlan& cut : {BatchPlan{.dataset_size = 48, .global_batch = 16, .shards = 4},
                               BatchPlan{.dataset_size = 48,
                                         .global_batch = 24,
                                         .micro_steps = 2,
                                         .shards = 4,
                                         .groups = 2,
                                         .ranks = 4}}) {
    for (BatchPlan plan = cut; plan.rank < plan.ranks; ++plan.rank) {
      const int64_t steps = 2 * steps_per_epoch(plan);
      Loader loader(dataset,
                    training_sequence(plan, 0, steps),
                    {.workers = 2, .augmentation = {.pad = 2, .flip = Flip::kRandom, .seed = 1}});
      const BatchSequence sequence = training_sequence(plan, 0, steps);
      while (loader.left() > 0) {
        const LoadedBatch batch = loader.next();
        const MicroBatch micro = sequence.at(batch.number);
        for (size_t row = 0; row < micro.images.size(); ++row) {
          const Tensor image = batch.images.slice(static_cast<int64_t>(row), 1);
          const auto bytes = image.span<const uint8_t>();
          const Bytes copy(bytes.begin(), bytes.end());
          const auto known = seen.try_emplace({micro.epoch, micro.images[row]}, copy).first;
          EXPECT_EQ(known->second, copy);
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 2U * 48);
  const auto changed = std::ranges::count_if(seen, [&](const auto& entry) {
    const auto& [key, bytes] = entry;
    return key.first == 0 && bytes != seen.at({1, key.second});
  });
  EXPECT_GT(changed, 40);  // of 48 in the second epoch
}

TEST(Loader, RefusesToPadByMoreThanAnImage) {
  EXPECT_THROW(Loader(images(), sequence(), {.augmentation = {.pad = 5}}), InternalError);
  EXPECT_THROW(Loader(images(), sequence(), {.augmentation = {.pad = -1}}), InternalError);
}

TEST(Loader, DoesNotCountTimeInWhichItsCallerWorks) {
  const auto dataset = std::make_shared<Slow>(Synthetic::Options{.images = 1, .shape = {1, 1, 1}});
  Loader loader(dataset,
                training_sequence({.dataset_size = 1, .global_batch = 1}, 0, 1),
                {.workers = 1, .ahead = 1});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the image takes 10
  loader.next();
  EXPECT_LT(loader.waited_seconds(), 0.1);
}

TEST(Loader, LoadsEvaluationChunks) {
  const EvaluationPlan plan{
      .dataset_size = 50, .chunk_images = 8, .chunks_at_once = 2, .rank = 1, .ranks = 2};
  Loader loader(images(), evaluation_sequence(plan), {.workers = 1, .ahead = 2});
  EXPECT_EQ(loader.left(), 2);
  EXPECT_EQ(loader.next().labels.numel(), 16);
  EXPECT_EQ(loader.next().labels.numel(), 8);
}

TEST(Loader, ARankMayHaveNoImages) {
  Loader loader(
      images(1),
      training_sequence({.dataset_size = 1, .global_batch = 2, .shards = 4, .ranks = 4}, 0, 1),
      {.workers = 1, .ahead = 2});
  const LoadedBatch batch = loader.next();
  EXPECT_EQ(batch.images.shape(), Shape({0, 3, 4, 5}));
  EXPECT_EQ(batch.shards.local(), 1);
}

}  // namespace
}  // namespace lockstep::data::loader_test
