// Built-in data sets whose images are drawn on demand.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/philox.h"
#include "data/dataset.h"

#pragma GCC visibility push(default)
namespace lockstep::data {

// A cache for `images` images of `image_bytes` each. The system allocates its memory page by page
// as images are stored. Thread safety: all functions may be called from any thread, without locks.
class ImageCache {
 public:
  ImageCache(int64_t images, int64_t image_bytes)
      : image_bytes_(static_cast<size_t>(image_bytes)),
        states_(std::make_unique<std::atomic<State>[]>(static_cast<size_t>(images))),
        pixels_(
            std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(images) * image_bytes_)) {
  }

  // Copies image i to `pixels` if it is cached; else calls make(pixels) and caches the result.
  // Threads that ask for the same new image at the same time all make it, so that none waits.
  template <class Make>
  void get(int64_t i, std::span<uint8_t> pixels, Make&& make) {
    std::atomic<State>& state = states_[static_cast<size_t>(i)];
    uint8_t* const kept = pixels_.get() + static_cast<size_t>(i) * image_bytes_;
    if (state.load(std::memory_order_acquire) == State::kReady) {
      std::copy_n(kept, image_bytes_, pixels.data());
      return;
    }
    make(pixels);
    State expected = State::kEmpty;
    if (state.compare_exchange_strong(expected, State::kFilling, std::memory_order_relaxed)) {
      std::copy_n(pixels.data(), image_bytes_, kept);
      state.store(State::kReady, std::memory_order_release);
    }
  }

 private:
  enum class State : uint8_t { kEmpty, kFilling, kReady };

  size_t image_bytes_;
  std::unique_ptr<std::atomic<State>[]> states_;
  std::unique_ptr<uint8_t[]> pixels_;
};

// A data set of ten classes. Image i is a pure function of split and i, computed by integer
// arithmetic and counter-based random numbers, so its bytes are the same on every machine. It is
// drawn when first read, and cached.
class DrawnDataset : public Dataset {
 public:
  enum class Split : uint8_t { kTrain, kTest };

  struct Recipe {
    const char* name = "";
    int64_t train_images = 0;
    int64_t test_images = 0;
    ImageShape shape;
    uint64_t seed = 0;
    RandomPurpose purpose = RandomPurpose::kDigits;
    // Draws one image of class `label` in HWC order.
    void (*draw)(PhiloxStream& random, int32_t label, std::span<uint8_t> pixels) = nullptr;
  };

  // Requires: the recipe outlives this.
  DrawnDataset(const Recipe& recipe, Split split);

  std::string name() const override;
  int64_t size() const override { return size_; }
  int64_t classes() const override { return 10; }
  ImageShape image_shape() const override { return recipe_.shape; }
  int32_t label(int64_t i) const override;
  void read(int64_t i, std::span<uint8_t> pixels) const override;
  // Over all labels and some images, both of which change when the recipe changes.
  std::string digest() const override;

 private:
  PhiloxStream stream_of(int64_t i) const;

  const Recipe& recipe_;
  Split split_;
  int64_t size_;
  mutable ImageCache cache_;
};

// Gray images of 28 x 28: a bright digit, 0 to 9, on black. 60,000 for training, 10,000 for
// testing.
class Digits : public DrawnDataset {
 public:
  explicit Digits(Split split);
};

DatasetPair open_digits(Splits splits = Splits::kBoth);

// Color images of 32 x 32: one large shape on a background with clutter, at a random position,
// size, rotation and color. Classes are those of shape_outline(). 20,000 for training, 4,000 for
// testing.
class Shapes : public DrawnDataset {
 public:
  explicit Shapes(Split split);
};

DatasetPair open_shapes(Splits splits = Splits::kBoth);

}  // namespace lockstep::data
#pragma GCC visibility pop
