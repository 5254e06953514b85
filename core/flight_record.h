// The memory of a flight recorder, which is also its file format: a rank's last events, and what
// the rank is doing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace lockstep {

struct FlightEvent {
  enum class Kind : uint8_t {
    kNone,
    kPart,   // a part of the training thread's work: a step, "backward", "wait for images"
    kLayer,  // of the forward or backward pass
    kCall,   // a collective call
    kLoad,   // a part of a loader thread's work
    kEnd,    // the rank's end; `number` is its exit code
  };
  enum class Phase : uint8_t { kEntered, kLeft };

  uint64_t sequence = 0;  // number among the rank's events, from 1; 0: no event
  int64_t time_ns = 0;    // by the rank's steady clock
  int64_t number = -1;    // number of the step, batch or call; -1: none
  int32_t step = 0;       // the rank's present or last step, from 1; 0: none yet
  Kind kind = Kind::kNone;
  Phase phase = Phase::kEntered;
  uint16_t lane = 0;            // for kLoad: which thread
  std::array<char, 32> name{};  // truncated; NUL-terminated only if shorter

  explicit operator bool() const { return sequence != 0; }
  std::string_view text() const {
    const std::string_view all(name.data(), name.size());
    return all.substr(0, all.find('\0'));
  }
};
static_assert(sizeof(FlightEvent) == 64 && std::is_trivially_copyable_v<FlightEvent>);

inline constexpr size_t kFlightEvents = 256;
inline constexpr size_t kFlightParts = 6;    // nested parts that are kept
inline constexpr size_t kFlightLoaders = 8;  // threads; for further ones only events are kept
inline constexpr size_t kFlightLoads = 2;    // nested parts of a loader's work that are kept

// The parts, calls and layers that the rank has entered and not left. It is kept apart from the
// ring of events, where a deep network's layers overwrite everything else.
struct FlightState {
  std::array<FlightEvent, kFlightParts> parts;  // the outermost first
  FlightEvent layer;      // the present layer; if that is unknown, the one before it, as kLeft
  FlightEvent open_call;  // the oldest open call
  FlightEvent wait;       // the call in which it waits for peers, and since when
  FlightEvent last_call;  // the call that it entered last
  std::array<std::array<FlightEvent, kFlightLoads>, kFlightLoaders> loads;  // by thread
  FlightEvent end;
};

struct FlightHeader {
  static constexpr std::array<char, 8> kMagic = {'L', 'S', 'F', 'L', 'I', 'G', 'H', 'T'};
  static constexpr uint32_t kFormat = 1;

  std::array<char, 8> magic = kMagic;
  uint32_t format = kFormat;
  int32_t rank = 0;
  int32_t ranks = 0;
  int32_t pid = 0;
  uint64_t host = 0;                 // the same for all ranks on a host, until it reboots
  int64_t wall_minus_steady_ns = 0;  // difference of the rank's clocks
  // Set in a copy that was made when the run ended: the time of the copy, by the host's steady
  // clock, and the state of the process at that time: a letter of /proc/PID/stat, or '-' if it was
  // gone.
  int64_t copied_ns = 0;  // 0: not a copy, but the memory that the process writes or wrote
  char process = 0;
  std::array<char, 15> unused{};
};

struct FlightRecord {
  FlightHeader header;
  FlightState state;
  std::array<FlightEvent, kFlightEvents> events;  // event n at (n - 1) % kFlightEvents
};
static_assert(std::is_trivially_copyable_v<FlightRecord> && sizeof(FlightHeader) == 64);

}  // namespace lockstep
