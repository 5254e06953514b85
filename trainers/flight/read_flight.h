// Reads the flight records of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/flight_record.h"

namespace lockstep::trainers {

// One rank's record. All events are in their ranges; their text is as it was found: make it
// printable.
struct RankFlight {
  FlightHeader header;
  FlightState state;
  std::vector<FlightEvent> events;  // in the order of their numbers
  char process = 0;                 // trainers/flight/rank_process.h, when it was seen
  int64_t seen_ns = 0;              // when that was, on the clock of its events; 0: not known

  int rank() const { return header.rank; }
};

// The bytes of a file. Errors: DataError for what is no record.
RankFlight flight_of(std::span<const std::byte> bytes, const std::string& file);

struct RunFlight {
  int ranks = 0;
  std::vector<RankFlight> flights;    // in the order of their ranks, on the clock of the first one
  std::vector<std::string> problems;  // a line a rank whose record cannot be read
};

// All records in a run directory, also while the run goes on. Hosts' clocks are taken to agree to a
// fraction of a second where records are of several. Errors: DataError where there is none.
RunFlight read_flights(const std::filesystem::path& run);

}  // namespace lockstep::trainers
