#include "core/flight_recorder.h"

#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/timeline.h"
#include "core/unique_fd.h"
#include "tests/support/temp_dir.h"

namespace lockstep::flight_recorder_test {
namespace {

using Kind = FlightEvent::Kind;
using Phase = FlightEvent::Phase;
using Clock = FlightRecorder::Clock;

// The events in their order.
std::vector<FlightEvent> events_of(const FlightRecord& record) {
  std::vector<FlightEvent> events;
  for (const FlightEvent& event : record.events) {
    if (event) events.push_back(event);
  }
  std::ranges::sort(events, {}, &FlightEvent::sequence);
  return events;
}

TEST(FlightRecorder, KnowsThePartsThatItIsIn) {
  FlightRecorder recorder(1, 2, 7);
  const FlightState& state = recorder.record().state;
  recorder.enter_part(kStepSpan, 12);
  recorder.enter_part(kForwardSpan, -1);
  EXPECT_EQ(state.parts[0].text(), "step");
  EXPECT_EQ(state.parts[0].number, 12);
  EXPECT_EQ(state.parts[1].text(), "forward");
  EXPECT_EQ(state.parts[1].step, 12);
  recorder.leave_part();
  EXPECT_FALSE(state.parts[1]);
  EXPECT_TRUE(state.parts[0]);
  for (size_t depth = 0; depth < kFlightParts + 3; ++depth) recorder.enter_part("deep", -1);
  for (size_t depth = 0; depth < kFlightParts + 3; ++depth) recorder.leave_part();
  recorder.leave_part();
  recorder.leave_part();  // of none
  EXPECT_FALSE(state.parts[0]);
  const std::vector<FlightEvent> events = events_of(recorder.record());
  EXPECT_EQ(events.back().text(), "step");
  EXPECT_EQ(events.back().phase, Phase::kLeft);
}

TEST(FlightRecorder, KnowsTheOldestCallAndWhatItWaitsFor) {
  FlightRecorder recorder(0, 2, 7);
  const FlightState& state = recorder.record().state;
  recorder.enter_call(10, "bucket 0");
  recorder.enter_call(11, "bucket 1");
  recorder.begin_wait(10, "bucket 0");
  EXPECT_EQ(state.open_call.number, 10);
  EXPECT_EQ(state.last_call.number, 11);
  EXPECT_EQ(state.wait.number, 10);
  recorder.end_wait();
  recorder.leave_call(10);
  EXPECT_FALSE(state.wait);
  EXPECT_EQ(state.open_call.number, 11);
  recorder.leave_call(11);
  EXPECT_FALSE(state.open_call);
  recorder.enter_call(11, "bucket 1");  // its next piece
  EXPECT_EQ(state.open_call.number, 11);
  std::string order;
  for (const FlightEvent& event : events_of(recorder.record())) {
    order += (event.phase == Phase::kEntered ? "+" : "-") + std::to_string(event.number);
  }
  EXPECT_EQ(order, "+10+11-10-11");
}

TEST(FlightRecorder, KeepsTheLast256EventsAndCutsNames) {
  FlightRecorder recorder(0, 1, 7);
  const std::string name(100, 'x');
  for (int64_t call = 1; call <= 1000; ++call) recorder.enter_call(call, name);
  const std::vector<FlightEvent> events = events_of(recorder.record());
  ASSERT_EQ(events.size(), 256U);
  EXPECT_EQ(events.front().number, 745);
  EXPECT_EQ(events.back().number, 1000);
  EXPECT_EQ(events.back().text(), name.substr(0, 32));
}

TEST(FlightRecorder, ThreadsRecordBesideEachOther) {
  FlightRecorder recorder(0, 1, 7);
  Timeline timeline(0, &recorder);
  std::vector<std::thread> threads;
  for (int lane = 0; lane < 4; ++lane) {
    threads.emplace_back([&timeline, lane] {
      const TimelineLane where{TimelineLane::Kind::kLoader, lane};
      for (int i = 0; i < 5000; ++i) const TimelineSpan span(&timeline, "batch", i, where);
      const TimelineSpan last(&timeline, "decode", 5000, where);
    });
  }
  for (int i = 0; i < 5000; ++i) const TimelineSpan span(&timeline, kStepSpan, i);
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> sequences;
  for (const FlightEvent& event : events_of(recorder.record())) {
    EXPECT_TRUE(event.text() == "batch" || event.text() == "step" || event.text() == "decode");
    sequences.insert(event.sequence);
  }
  EXPECT_GE(sequences.size(), 250U);  // two may meet in one place, once around the ring
  for (const auto& lane : recorder.record().state.loads) EXPECT_FALSE(lane[0]);
}

TEST(FlightRecorder, HearsNothingOfASpanThatAnExceptionEnds) {
  FlightRecorder recorder(0, 1, 7);
  Timeline timeline(0, &recorder);
  try {
    const TimelineSpan span(&timeline, kBackwardSpan);
    throw std::runtime_error("broken");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(recorder.record().state.parts[0].text(), kBackwardSpan);
}

// What the memory is for: SIGKILL calls no handler.
TEST(FlightRecorder, OutlivesAProcessThatIsKilled) {
  const testing::TempDir dir;
  const std::string path = (dir / "ring").string();
  const pid_t child = fork();
  if (child == 0) {
    const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
    FlightRecorder recorder(3, 4, 7);
    recorder.enter_part(kStepSpan, 1);  // before there is a file
    if (!recorder.move_to(file.get())) _exit(1);
    recorder.enter_layer("conv2", "conv1", Clock::now());
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const UniqueFd file(open(path.c_str(), O_RDONLY));
  FlightRecord record;
  ASSERT_EQ(read_at(file, 0, std::as_writable_bytes(std::span(&record, 1))), sizeof(record));
  EXPECT_EQ(record.header.rank, 3);
  EXPECT_EQ(record.header.pid, child);
  EXPECT_EQ(record.state.parts[0].number, 1);
  EXPECT_EQ(record.state.layer.text(), "conv2");
  EXPECT_EQ(events_of(record).size(), 2U);
}

}  // namespace
}  // namespace lockstep::flight_recorder_test
