// Images that are costly to make, kept after their first use.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace lockstep::data {

// Room for `images` of `image_bytes` each; the system hands out the memory page by page as images
// arrive. Thread safety: all functions may be called from any thread, without locks.
class ImageCache {
 public:
  ImageCache(int64_t images, int64_t image_bytes)
      : image_bytes_(static_cast<size_t>(image_bytes)),
        states_(std::make_unique<std::atomic<State>[]>(static_cast<size_t>(images))),
        pixels_(
            std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(images) * image_bytes_)) {
  }

  // Copies image i to `pixels`, or calls make(pixels) and keeps what it wrote. Threads that want
  // the same new image at the same time each make it, so none waits.
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

}  // namespace lockstep::data
