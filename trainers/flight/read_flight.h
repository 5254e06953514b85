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

// One rank's record. All events are in range. Their text is as it was found, so make it printable
// before showing it.
struct RankFlight {
  FlightHeader header;
  FlightState state;
  std::vector<FlightEvent> events;  // in the order of their numbers
  char process = 0;                 // engine/observe/rank_process.h, when it was seen
  int64_t seen_ns = 0;              // when that was, on the clock of its events; 0: not known

  int rank() const { return header.rank; }
};

// Parses the bytes of a file. Errors: DataError for bytes that are no record.
RankFlight flight_of(std::span<const std::byte> bytes, const std::string& file);

struct RunFlight {
  int ranks = 0;
  std::vector<RankFlight> flights;    // in the order of their ranks, on the clock of the first one
  std::vector<std::string> problems;  // a line for each rank whose record cannot be read
};

// Reads all records in a run directory, also while the run goes on. Where they come from several
// hosts, the hosts' clocks are assumed to agree to a fraction of a second. Errors: DataError where
// there is none.
RunFlight read_flights(const std::filesystem::path& run);

}  // namespace lockstep::trainers
