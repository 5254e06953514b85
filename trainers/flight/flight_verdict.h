// Says which rank others wait for, and what it is in; or that the records do not tell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainers/flight/read_flight.h"

namespace lockstep::trainers {

enum class FlightCause : uint8_t {
  kNone,         // no verdict
  kStopped,      // by a signal
  kCrashed,      // its process is gone
  kFailed,       // by an error of its own
  kLoader,       // it waits for images
  kSaving,       // a checkpoint
  kLayer,        // of the forward or backward pass
  kPart,         // another part of its work
  kSilent,       // in no part that is known
  kSkipped,      // its calls are not those of the other ranks
  kLostMessage,  // all ranks are in one call
};

struct FlightVerdict {
  FlightCause cause = FlightCause::kNone;
  std::vector<int> culprits;  // ranks; none of a lost message
  std::vector<int> victims;   // ranks that wait
  std::string text;           // "rank 1 is stopped by a signal; ...", or "no verdict: ..."
};

// A rank that waits for others is never a culprit. Without a rank that gave up, is gone or stopped,
// a wait counts from a second on, where steps are long from three of them on.
FlightVerdict verdict_on(const RunFlight& run);

// The part that the rank is in, "backward, layer conv2"; empty: none is known.
std::string place_of(const RankFlight& flight);
// An event's text, made printable; "..." stands for what was cut.
std::string shown_name(std::string_view text);
// When anything was last seen or recorded, on the first record's clock.
int64_t end_of(const RunFlight& run);
int64_t last_event_of(const RankFlight& flight);

}  // namespace lockstep::trainers
