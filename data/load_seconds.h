// Measures how the time of making training images is spent.
#pragma once

#include <chrono>

#pragma GCC visibility push(default)
namespace lockstep::data {

struct LoadSeconds {
  double disk = 0;     // reading files
  double decode = 0;   // decoding to pixels
  double augment = 0;  // everything else: resizing, cropping, copying

  LoadSeconds& operator+=(const LoadSeconds& other) {
    disk += other.disk;
    decode += other.decode;
    augment += other.augment;
    return *this;
  }
  LoadSeconds operator-(const LoadSeconds& other) const {
    return {.disk = disk - other.disk,
            .decode = decode - other.decode,
            .augment = augment - other.augment};
  }
};

// Total time of this thread's images so far. Data sets that read files add to it.
inline LoadSeconds& load_seconds() {
  thread_local LoadSeconds seconds;
  return seconds;
}

// Adds its lifetime to `seconds`, one of LoadSeconds' members.
class LoadClock {
 public:
  explicit LoadClock(double& seconds) : seconds_(seconds) {}
  LoadClock(const LoadClock&) = delete;
  LoadClock& operator=(const LoadClock&) = delete;
  ~LoadClock() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double& seconds_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace lockstep::data
#pragma GCC visibility pop
