#include "inspect/flight/describe_flight.h"

#include <gmock/gmock.h>

#include "tests/support/made_flight.h"

namespace lockstep::trainers::describe_flight_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DescribeFlight, IsATableAndAVerdict) {
  RunFlight run{.ranks = 3, .flights = {}, .problems = {}};
  for (int rank = 0; rank < run.ranks; ++rank) {
    testing::MadeFlight flight(rank, run.ranks);
    flight.take_step(1, 1);
    flight.take_step(2, 2);
    if (rank != 1) flight.wait_in_step(3, 3);
    run.flights.push_back(flight.seen(rank == 1 ? kProcessStopped : 'S', 5));
  }
  const std::string text = describe_flight(run);
  EXPECT_THAT(text, StartsWith("rank  process  step  in             last call"));
  EXPECT_THAT(text, HasSubstr("1     stopped  2     -              2 bucket 0 (8 tensors)  left"));
  EXPECT_THAT(text, HasSubstr("\nverdict  rank 1 is stopped by a signal; ranks 0, 2 wait for it"));
}

}  // namespace
}  // namespace lockstep::trainers::describe_flight_test
