// TensorBoard's event files: records of protocol-buffer messages, each with checksums.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/atomic_file.h"

namespace lockstep::trainers {

// A point of a curve.
struct Scalar {
  std::string tag;  // such as "train/loss"
  double value = 0;
};

// Written by one process. TensorBoard reads the file while it grows: an event is one write().
class EventFile {
 public:
  // Opens the event file of `folder`, or makes the folder and a file named as torch names it:
  // events.out.tfevents.<seconds>.<host>.<process>.0. A file that is there keeps its events up to
  // step `last`; later ones are dropped, and so is what a killed process left of its last event.
  // Errors: EnvironmentError.
  EventFile(const std::filesystem::path& folder, int64_t last);

  // The values at `step`, now. NaN and infinities are written as they are. Errors:
  // EnvironmentError; then the file is as before.
  void append(int64_t step, std::span<const Scalar> scalars);

 private:
  AppendedFile file_;
};

// The event file of `folder`; empty where there is none.
std::filesystem::path event_file_in(const std::filesystem::path& folder);

// CRC-32C (polynomial 0x82F63B78, reflected) of `bytes`.
uint32_t crc32c(std::string_view bytes);

}  // namespace lockstep::trainers
