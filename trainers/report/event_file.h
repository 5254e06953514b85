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
  // Opens the event file of `folder`, or makes the folder and a file with the name that torch would
  // give it: events.out.tfevents.<seconds>.<host>.<process>.0. An existing file keeps its events up
  // to step `last`. Later ones are dropped; so are the end of a session, because the session goes
  // on, an unfinished event of a killed process, and at step `last` values with the tag `again`,
  // which are to be written again. Errors: EnvironmentError.
  EventFile(const std::filesystem::path& folder, int64_t last, std::string_view again = {});

  // Whether the file holds no earlier values.
  bool is_new() const { return is_new_; }
  // Appends the values at `step`, with the current time; empty ones are left out. Errors:
  // EnvironmentError; then the file is as before.
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
