// TensorBoard's event files: records of protocol buffers (event_values.h), each with checksums.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/atomic_file.h"

namespace lockstep::trainers {

// Written by one process. TensorBoard reads the file while it grows: an event is one write().
class EventFile {
 public:
  // Opens the event file of `folder`, or makes the folder and a file named as torch names it:
  // events.out.tfevents.<seconds>.<host>.<process>.0. A file that is there keeps its events up to
  // step `last`; later ones are dropped, and so are the end of a session, which has not ended after
  // all, and what a killed process left of its last event.
  // Errors: EnvironmentError.
  EventFile(const std::filesystem::path& folder, int64_t last);

  // True where no values were kept.
  bool is_new() const { return is_new_; }
  // The values at `step`, now; empty ones are left out. Errors: EnvironmentError; then the file is
  // as before.
  void append(int64_t step, std::span<const std::string> values);

 private:
  bool is_new_ = true;
  AppendedFile file_;
};

// The event file of `folder`; empty where there is none. Errors: EnvironmentError for a folder that
// cannot be read.
std::filesystem::path event_file_in(const std::filesystem::path& folder);

// CRC-32C (polynomial 0x82F63B78, reflected) of `bytes`.
uint32_t crc32c(std::string_view bytes);

}  // namespace lockstep::trainers
