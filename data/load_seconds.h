// Measures where the time of making training images goes.
#pragma once

#include <chrono>

#pragma GCC visibility push(default)
namespace lockstep::data {

struct LoadSeconds {
  double disk = 0;     // files into memory
  double decode = 0;   // into pixels
  double augment = 0;  // all the rest: resizing, cropping, copying

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

// Time that this thread's images took so far. Data sets that read files add to it.
inline LoadSeconds& load_seconds() {
  thread_local LoadSeconds seconds;
  return seconds;
}

// Adds its own lifetime to one of them.
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
