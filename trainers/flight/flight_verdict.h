// Finds the rank that the others wait for and what it is doing, or that the records do not tell.
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

// A rank that waits for others is never a culprit. If no rank gave up, is gone or is stopped, a
// wait counts once it has lasted a second and as long as three usual steps.
FlightVerdict verdict_on(const RunFlight& run);

// The part that the rank is in, "backward, layer conv2"; empty: none is known.
std::string place_of(const RankFlight& flight);
// Returns an event's text, made printable, with "..." where it was cut.
std::string shown_name(std::string_view text);
// The time of the last event or observation, on the first record's clock.
int64_t end_of(const RunFlight& run);
int64_t last_event_of(const RankFlight& flight);

}  // namespace lockstep::trainers
