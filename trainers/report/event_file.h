// TensorBoard's event files: records of protocol buffers (EventFile below), each with checksums.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>

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

// NaN and infinities are written as they are.
std::string scalar_value(std::string_view tag, double value);

// 8 bits per channel, HWC.
struct Picture {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 1;  // 1 or 3
  std::string pixels = {};
};
// Empty in a build without libpng.
std::string image_value(std::string_view tag, const Picture& picture);

// Counts the values that are finite, in the bins that torch's add_histogram has by default. Empty
// where no value is finite.
std::string histogram_value(std::string_view tag, std::span<const float> values);

// Markdown. Requires: ASCII or UTF-8.
std::string text_value(std::string_view tag, std::string_view text);

// A setting of a run, for TensorBoard's table of runs. Requires: ASCII or UTF-8.
struct HParam {
  std::string name;
  std::variant<bool, double, std::string> value;
};
std::string session_start_value(std::span<const HParam> hparams,
                                std::chrono::system_clock::time_point start);
// The session reached its end.
std::string session_end_value(std::chrono::system_clock::time_point end);
inline constexpr std::string_view kSessionEndTag = "_hparams_/session_end_info";

}  // namespace lockstep::trainers
