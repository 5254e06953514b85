// Tests when buckets are exchanged, with a communicator that records its calls.
#include <thread>

#include <gmock/gmock.h>

#include "comm/gradient_reducer.h"
#include "comm/shared/thread_ranks.h"
#include "comm/single.h"
#include "tests/support/known_gradients.h"

namespace lockstep::comm::gradient_order_test {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::known_sum;
using testing::KnownGradients;

struct Log {
  std::vector<char> starts;  // first tensor of each bucket
  std::vector<std::vector<float>> values;
  int advances = 0;
  int waits = 0;
};

// Completes at the third call of advance().
class SlowWork : public Work {
 public:
  explicit SlowWork(Log& log) : log_(log) {}

  bool advance() override {
    ++log_.advances;
    return --left_ <= 0;
  }
  void wait() override { ++log_.waits; }

 private:
  Log& log_;
  int left_ = 3;
};

class RecordingCommunicator : public SingleCommunicator {
 public:
  std::unique_ptr<Work> start_all_reduce(const AllReduce& what) override {
    log.starts.push_back(what.label[what.label.find(',') + 2]);
    const auto span = what.values.span<float>();
    log.values.emplace_back(span.begin(), span.end());
    std::this_thread::sleep_for(start_takes);
    return std::make_unique<SlowWork>(log);
  }

  Log log;
  milliseconds start_takes{0};
};

class ReducerOrder : public ::testing::Test {
 protected:
  ReducerOrder() : model_(peers_) {}

  // One tensor per bucket unless `caps` says otherwise.
  GradientReducer reducer(ReducerOptions options = {}, const BucketCaps& caps = {1, 1}) {
    options.caps = caps;
    return {peers_, model_.stream, model_.parameters, model_.names, std::move(options)};
  }

  RecordingCommunicator peers_;
  KnownGradients model_;
};

TEST_F(ReducerOrder, ABucketStartsDuringBackwardWhenItsLastGradientIsThere) {
  GradientReducer reducer = this->reducer({}, {1400, 600});  // {e, d}, {c, b, a}
  model_.backward({.unused = {1}});
  EXPECT_THAT(peers_.log.starts, ElementsAre('e'));
  EXPECT_THAT(peers_.log.values[0], [] {
    std::vector<float> want = known_sum({}, 300);
    want.resize(320);
    const std::vector<float> d = known_sum({}, 65);
    want.insert(want.end(), d.begin(), d.end());
    return want;
  }());
}

TEST_F(ReducerOrder, BucketsStartInTheOrderOfThePlan) {
  GradientReducer reducer = this->reducer();
  model_.backward({.order = {3, 0, 4, 1, 2}});
  EXPECT_THAT(peers_.log.starts, ElementsAre('e', 'd', 'c', 'b', 'a'));
  reducer.finish();
  EXPECT_EQ(peers_.log.starts.size(), 5U);
}

TEST_F(ReducerOrder, ABucketWaitsForThoseBeforeIt) {
  GradientReducer reducer = this->reducer({.zero_unused = true});
  model_.backward({.unused = {3}});
  EXPECT_THAT(peers_.log.starts, ElementsAre('e'));
  reducer.finish();
  EXPECT_THAT(peers_.log.starts, ElementsAre('e', 'd', 'c', 'b', 'a'));
}

TEST_F(ReducerOrder, HooksAdvanceWhatIsUnderWay) {
  GradientReducer reducer = this->reducer();
  model_.backward();
  // e completes in c's hook, d in b's, c in a's; b was advanced twice, a once.
  EXPECT_EQ(peers_.log.advances, 3 + 3 + 3 + 2 + 1);
  EXPECT_EQ(peers_.log.waits, 0);
  reducer.finish();
  EXPECT_EQ(peers_.log.waits, 2);
}

TEST_F(ReducerOrder, WithoutOverlapAllStartInFinish) {
  GradientReducer reducer = this->reducer({.overlap = false});
  model_.backward();
  EXPECT_THAT(peers_.log.starts, IsEmpty());
  reducer.finish();
  EXPECT_THAT(peers_.log.starts, ElementsAre('e', 'd', 'c', 'b', 'a'));
  EXPECT_EQ(peers_.log.waits, 5);
}

TEST_F(ReducerOrder, NothingStartsBeforeTheLastMicroStep) {
  GradientReducer reducer = this->reducer({.micro_steps = 2});
  model_.backward();
  reducer.next_micro_step();
  EXPECT_THAT(peers_.log.starts, IsEmpty());
  model_.backward({.micro_step = 1});
  EXPECT_THAT(peers_.log.starts, ElementsAre('e', 'd', 'c', 'b', 'a'));
}

TEST_F(ReducerOrder, TimesSayWhatWasExposed) {
  peers_.start_takes = milliseconds(2);
  GradientReducer reducer = this->reducer({}, {1400, 600});
  model_.backward();
  std::this_thread::sleep_for(milliseconds(10));
  reducer.finish();
  const ExchangeTimes& times = reducer.times();
  ASSERT_EQ(times.buckets.size(), 2U);
  EXPECT_GE(times.exposed_s, 0.004);
  EXPECT_GE(times.hidden_s, 0.010);  // the second bucket was in progress during the sleep
  for (const BucketTimes& bucket : times.buckets) {
    EXPECT_LE(bucket.ready, bucket.start);
    EXPECT_GE(bucket.end - bucket.start, milliseconds(2));
  }
  EXPECT_LE(times.buckets[0].start, times.buckets[1].start);
}

TEST_F(ReducerOrder, TimesWithoutOverlapAreExposed) {
  peers_.start_takes = milliseconds(2);
  GradientReducer reducer = this->reducer({.overlap = false});
  model_.backward();
  std::this_thread::sleep_for(milliseconds(5));
  reducer.finish();
  EXPECT_GE(reducer.times().exposed_s, 0.010);
  const BucketTimes& first = reducer.times().buckets[0];
  EXPECT_GE(first.start - first.ready, milliseconds(5));
}

TEST(ReducerRanks, StartInOneOrderThoughTheirGradientsComeInAnother) {
  spawn_ranks(4, [](Communicator& peers) {
    KnownGradients model(peers);
    GradientReducer reducer(peers, model.stream, model.parameters, model.names, {.caps = {1, 1}});
    const std::vector<size_t> orders[] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {3, 4, 0, 1, 2}};
    model.backward({.order = orders[peers.rank()]});
    reducer.finish();
    for (const Var& parameter : model.parameters) {
      testing::expect_same(parameter.grad(), known_sum({}, parameter.value().numel()));
    }
  });
}

TEST(ReducerRanks, OnlyBucketsAreExchanged) {
  SingleCommunicator alone;
  KnownGradients model(alone);
  GradientReducer reducer(alone, model.stream, model.parameters, model.names, {.caps = {1, 1}});
  for (int64_t step = 1; step <= 2; ++step) {
    model.backward();
    reducer.finish();
    for (Var& parameter : model.parameters) parameter.set_grad({});
    EXPECT_EQ(alone.traffic().reduced_bytes, step * 4 * (1 + 63 + 64 + 65 + 300));
  }
}

}  // namespace
}  // namespace lockstep::comm::gradient_order_test
