#include "trainers/flight/flight_verdict.h"

#include <functional>

#include <gmock/gmock.h>

#include "tests/support/made_flight.h"

namespace lockstep::trainers::flight_verdict_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MadeFlight;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kRanks = 3;
constexpr int kCulprit = 1;

// Three ranks take two steps. In the third step, rank 1 runs `culprit` and the others wait for it.
RunFlight run_with(const std::function<void(MadeFlight&)>& culprit,
                   char process = 'S',
                   double after_s = 5) {
  RunFlight run{.ranks = kRanks, .flights = {}, .problems = {}};
  for (int rank = 0; rank < kRanks; ++rank) {
    MadeFlight flight(rank, kRanks);
    flight.take_step(1, 1);
    flight.take_step(2, 2);
    if (rank == kCulprit) {
      culprit(flight);
    } else {
      flight.wait_in_step(3, 3);
    }
    run.flights.push_back(flight.seen(rank == kCulprit ? process : 'S', after_s));
  }
  return run;
}

void expect_named(const RunFlight& run, FlightCause cause, const std::string& text) {
  const FlightVerdict verdict = verdict_on(run);
  EXPECT_EQ(verdict.cause, cause) << verdict.text;
  EXPECT_THAT(verdict.culprits, ElementsAre(kCulprit));
  EXPECT_THAT(verdict.victims, ElementsAre(0, 2));
  EXPECT_THAT(verdict.text, HasSubstr(text));
}

void expect_none(const RunFlight& run, const std::string& why) {
  const FlightVerdict verdict = verdict_on(run);
  EXPECT_EQ(verdict.cause, FlightCause::kNone);
  EXPECT_EQ(verdict.text, "no verdict: " + why);
  EXPECT_TRUE(verdict.culprits.empty());
}

TEST(FlightVerdict, NamesAStoppedAndACrashedRank) {
  const auto between_steps = [](MadeFlight&) {};
  expect_named(run_with(between_steps, kProcessStopped),
               FlightCause::kStopped,
               "rank 1 is stopped by a signal; ranks 0, 2 wait for it in call 3 \"bucket 0 (8 "
               "tensors)\"");
  expect_named(run_with([](MadeFlight& flight) { flight.wait_in_step(3, 3); }, kProcessStopped),
               FlightCause::kStopped,
               "rank 1 is stopped by a signal; ranks 0, 2 wait for it in call 3");
  expect_named(run_with(between_steps, kProcessGone), FlightCause::kCrashed, "its process is gone");
  expect_named(run_with(between_steps), FlightCause::kSilent, "rank 1 has recorded nothing for 5.");
}

// A killed rank's record ends wherever the rank was, also within a wait.
TEST(FlightVerdict, NamesAKilledRankWhereverItWas) {
  const auto in_wait = [](MadeFlight& flight) { flight.wait_in_step(3, 3); };
  expect_named(run_with(in_wait, kProcessGone), FlightCause::kCrashed, "rank 1 crashed or was");
  const auto between_checks = [](MadeFlight& flight) {
    flight->enter_part(kStepSpan, 3);
    flight->enter_call(3, "bucket 0 (8 tensors)");
    flight->enter_part(kSumsSpan, -1);
  };
  expect_named(run_with(between_checks, kProcessGone, 0.1), FlightCause::kCrashed, "its process");
  const auto further = [](MadeFlight& flight) {
    flight.take_step(3, 3);
    flight.wait_in_step(4, 4);
  };
  expect_named(run_with(further, kProcessGone), FlightCause::kCrashed, "its process is gone");
  const auto in_part = [](const char* part) {
    return [part](MadeFlight& flight) { flight->enter_part(part, -1); };
  };
  for (const char* part : {"saving a checkpoint", "evaluation", kLoaderWaitSpan}) {
    expect_named(run_with(in_part(part), kProcessGone), FlightCause::kCrashed, part);
  }
}

TEST(FlightVerdict, NamesARankThatWasKilledBeforeItsFirstCall) {
  RunFlight run = run_with([](MadeFlight&) {});
  run.flights[kCulprit] = MadeFlight(kCulprit, kRanks).seen(kProcessGone);
  expect_named(run, FlightCause::kCrashed, "rank 1 crashed or was killed: its process is gone");
}

TEST(FlightVerdict, NamesAKilledRankBeforeASlowerOne) {
  RunFlight run = run_with([](MadeFlight& flight) { flight.wait_in_step(3, 3); }, kProcessGone);
  MadeFlight slower(2, kRanks);
  slower.take_step(2, 2);
  slower->enter_part(kForwardSpan, -1);
  run.flights[2] = slower.seen('R');
  const FlightVerdict verdict = verdict_on(run);
  EXPECT_EQ(verdict.cause, FlightCause::kCrashed) << verdict.text;
  EXPECT_THAT(verdict.culprits, ElementsAre(kCulprit));
  EXPECT_THAT(verdict.victims, ElementsAre(0));
}

TEST(FlightVerdict, NamesAllKilledRanks) {
  RunFlight run = run_with([](MadeFlight& flight) { flight.wait_in_step(3, 3); }, kProcessGone);
  run.flights[2].process = kProcessGone;
  FlightVerdict verdict = verdict_on(run);
  EXPECT_THAT(verdict.culprits, ElementsAre(1, 2));
  EXPECT_THAT(verdict.victims, ElementsAre(0));
  EXPECT_THAT(verdict.text, HasSubstr("process is gone; rank 2 crashed or was killed in"));
  EXPECT_THAT(verdict.text, HasSubstr("; rank 0 waits for them in call 3"));
  run.flights[0].process = kProcessGone;
  RunFlight without_record = run;
  without_record.flights.erase(without_record.flights.begin() + kCulprit);
  EXPECT_THAT(verdict_on(without_record).text, HasSubstr("; rank 1 has no record"));
  verdict = verdict_on(run);
  EXPECT_EQ(verdict.cause, FlightCause::kCrashed);
  EXPECT_THAT(verdict.culprits, ElementsAre(0, 1, 2));
  EXPECT_THAT(verdict.victims, ElementsAre());
  EXPECT_THAT(verdict.text, Not(HasSubstr(" in call ")));
}

TEST(FlightVerdict, DescribesOnlySomeOfManyKilledRanks) {
  constexpr int kMany = 20;
  RunFlight run{.ranks = kMany, .flights = {}, .problems = {}};
  for (int rank = 0; rank < kMany; ++rank) {
    run.flights.push_back(MadeFlight(rank, kMany).seen(kProcessGone));
  }
  const FlightVerdict verdict = verdict_on(run);
  EXPECT_EQ(verdict.culprits.size(), size_t{kMany});
  EXPECT_THAT(verdict.text, HasSubstr("; 12 other ranks cannot go on"));
}

TEST(FlightVerdict, NamesARankThatFailedInAWait) {
  const auto fails = [](MadeFlight& flight) {
    flight.wait_in_step(3, 3);
    flight->end(5, "no memory");
  };
  expect_named(run_with(fails, 'R'), FlightCause::kFailed, "rank 1 ended with exit code 5");
}

TEST(FlightVerdict, NamesThePartThatARankIsIn) {
  const auto in = [](const char* part) {
    return [part](MadeFlight& flight) {
      flight->enter_part(kStepSpan, 3);
      flight->enter_part(part, -1);
    };
  };
  expect_named(run_with(in(kUpdateSpan)), FlightCause::kPart, "rank 1 is in \"optimizer\" for 5.");
  expect_named(run_with(in("saving a checkpoint")), FlightCause::kSaving, "a slow disk");
  expect_named(run_with([&](MadeFlight& flight) {
                 in(kLoaderWaitSpan)(flight);
                 flight->enter_load(0, "batch", 3, FlightRecorder::Clock::now());
                 flight->enter_load(0, "decode", -1, FlightRecorder::Clock::now());
               }),
               FlightCause::kLoader,
               "rank 1 waits for its loader, whose thread 0 decodes a photo for 5.");
  expect_named(run_with([&](MadeFlight& flight) {
                 in(kBackwardSpan)(flight);
                 flight->enter_call(3, "bucket 0 (8 tensors)");  // and keeps working
                 flight->enter_layer("conv1", "conv2", FlightRecorder::Clock::now());
               }),
               FlightCause::kLayer,
               "rank 1 is in backward, layer conv1 for 5.");
}

TEST(FlightVerdict, NamesARankThatFailedByItself) {
  expect_named(run_with([](MadeFlight& flight) { flight->end(3, "no such photo"); }, 'R'),
               FlightCause::kFailed,
               "rank 1 ended with exit code 3: no such photo");
}

TEST(FlightVerdict, NamesARankThatSkippedACall) {
  const auto skips = [](MadeFlight& flight) {
    flight->enter_part(kStepSpan, 3);
    flight->leave_part();
    flight.wait_in_step(4, 3);
  };
  expect_named(
      run_with(skips),
      FlightCause::kSkipped,
      "rank 1 skipped a collective call: there call 3 is \"bucket 0 (8 tensors)\" of step 4");
  RunFlight two = run_with(skips);
  two.ranks = 2;
  two.flights.pop_back();
  EXPECT_THAT(verdict_on(two).culprits, ElementsAre(kCulprit)) << "the one that is further";
}

TEST(FlightVerdict, BlamesNobodyForALostMessage) {
  const RunFlight run = run_with([](MadeFlight& flight) { flight.wait_in_step(3, 3); });
  const FlightVerdict verdict = verdict_on(run);
  EXPECT_EQ(verdict.cause, FlightCause::kLostMessage);
  EXPECT_THAT(verdict.culprits, ElementsAre());
  EXPECT_THAT(verdict.victims, ElementsAre(0, 1, 2));
  EXPECT_THAT(verdict.text, StartsWith("a message was lost"));
}

TEST(FlightVerdict, BlamesNoRankThatGaveUp) {
  RunFlight run = run_with([](MadeFlight&) {}, kProcessStopped);
  MadeFlight gave_up(0, kRanks);
  gave_up.wait_in_step(3, 3);
  gave_up->end(75, "rank 0 gave up waiting");
  run.flights[0] = gave_up.seen('R');
  expect_named(run, FlightCause::kStopped, "rank 1 is stopped by a signal");
}

// Over NCCL both ranks wait for their GPUs, in a graph or between calls.
TEST(FlightVerdict, BlamesNoRankForAWaitForTheGpu) {
  RunFlight run{.ranks = 2, .flights = {}, .problems = {}};
  for (const int rank : {0, 1}) {
    MadeFlight flight(rank, 2);
    flight.take_step(3, 3);
    if (rank == 0) flight->enter_part("graph", -1);
    if (rank == 1) flight->end(75, "gave up waiting in NCCL");
    run.flights.push_back(flight.seen('R'));
  }
  expect_none(run, "the ranks gave up between calls, as in a wait for their GPUs");
}

TEST(FlightVerdict, NamesARankThatWasStoppedInAWaitWhenAllOthersHaveGivenUp) {
  RunFlight run = run_with([](MadeFlight& flight) { flight.wait_in_step(3, 3); }, kProcessStopped);
  for (const int rank : {0, 2}) {
    MadeFlight gave_up(rank, kRanks);
    gave_up.take_step(3, 3);
    gave_up->end(75, "gave up waiting");
    run.flights[static_cast<size_t>(rank)] = gave_up.seen('R');
  }
  expect_named(run, FlightCause::kStopped, "rank 1 is stopped by a signal; ranks 0, 2 wait for it");
}

TEST(FlightVerdict, NamesALoneRankThatWasKilled) {
  RunFlight alone{.ranks = 1, .flights = {}, .problems = {}};
  alone.flights = {MadeFlight(0, 1).seen(kProcessGone)};
  const FlightVerdict verdict = verdict_on(alone);
  EXPECT_EQ(verdict.cause, FlightCause::kCrashed);
  EXPECT_THAT(verdict.culprits, ElementsAre(0));
  EXPECT_EQ(verdict.text, "rank 0 crashed or was killed: its process is gone");
}

TEST(FlightVerdict, AbstainsWithoutEvidence) {
  const auto in_forward = [](MadeFlight& flight) { flight->enter_part(kForwardSpan, -1); };
  expect_none(run_with(in_forward, 'R', 0.1), "the ranks go on: no wait is long");
  RunFlight ended{.ranks = 1, .flights = {}, .problems = {}};
  MadeFlight done(0, 1);
  done.take_step(1, 1);
  done->end(0, "");
  ended.flights = {done.seen('R')};
  expect_none(ended, "the run ended by itself");
  RunFlight alone{.ranks = 1, .flights = {MadeFlight(0, 1).seen()}, .problems = {}};
  expect_none(alone, "no rank waits for another");
  RunFlight unknown = run_with(in_forward);
  unknown.flights.erase(unknown.flights.begin() + kCulprit);
  expect_none(unknown, "all ranks with a record wait; rank 1 has none");
  RunFlight asleep = run_with(in_forward);
  for (RankFlight& flight : asleep.flights) flight.process = kProcessStopped;
  expect_none(asleep, "all ranks are stopped by a signal");
}

}  // namespace
}  // namespace lockstep::trainers::flight_verdict_test
