// The memory of a flight recorder, as it lies in a file: a rank's last events, and what it is in.
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

  uint64_t sequence = 0;  // among the rank's events, from 1; 0: no event
  int64_t time_ns = 0;    // by the rank's steady clock
  int64_t number = -1;    // of the step, the batch, the call; -1: none
  int32_t step = 0;       // that the rank is in, or was in last, from 1; 0: none yet
  Kind kind = Kind::kNone;
  Phase phase = Phase::kEntered;
  uint16_t lane = 0;            // of kLoad: which thread
  std::array<char, 32> name{};  // cut; NUL behind it where it is shorter

  explicit operator bool() const { return sequence != 0; }
  std::string_view text() const {
    const std::string_view all(name.data(), name.size());
    return all.substr(0, all.find('\0'));
  }
};
static_assert(sizeof(FlightEvent) == 64 && std::is_trivially_copyable_v<FlightEvent>);

inline constexpr size_t kFlightEvents = 256;
inline constexpr size_t kFlightParts = 6;    // that enclose each other
inline constexpr size_t kFlightLoaders = 8;  // threads; of further ones only events are kept
inline constexpr size_t kFlightLoads = 2;    // parts of a loader's work that enclose each other

// The parts, calls and layers that the rank has entered and not left. A deep network's layers push
// everything else out of the ring of events, and this stays.
struct FlightState {
  std::array<FlightEvent, kFlightParts> parts;  // the outermost first
  FlightEvent layer;      // the one that computes; left: the one before it, where it has no name
  FlightEvent open_call;  // the oldest
  FlightEvent wait;       // the call that it waits in for peers, since when
  FlightEvent last_call;  // the one that it entered last
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
  uint64_t host = 0;                 // ranks of one boot of one host have the same
  int64_t wall_minus_steady_ns = 0;  // of the rank's clocks
  // A copy that was made when the run ended says when, by the steady clock of the host, and what
  // the process was then: a letter of /proc/PID/stat, or '-' where it was gone.
  int64_t copied_ns = 0;  // 0: the process writes to this memory, or did
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
