#include "trainers/flight/last_words.h"

#include <fmt/core.h>

#include "core/error.h"
#include "trainers/flight/flight_verdict.h"
#include "trainers/flight/read_flight.h"

namespace lockstep::trainers {

std::string last_words(const std::filesystem::path& run, int rank) {
  if (run.empty()) return {};
  std::string text;
  if (rank == 0) {
    try {
      const FlightVerdict verdict = verdict_on(read_flights(run));
      if (verdict.cause != FlightCause::kNone) text = "  verdict: " + verdict.text + "\n";
    } catch (const Error&) {
      return {};
    }
  }
  return fmt::format("{}  see: lockstep flight {}\n", text, run.string());
}

}  // namespace lockstep::trainers
