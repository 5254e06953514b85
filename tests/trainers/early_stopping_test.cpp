// Item 0.16: the EarlyStopping of tutorial 000.
#include "engine/update/early_stopping.h"

#include <gtest/gtest.h>

namespace lockstep::trainers::early_stopping_test {
namespace {

// The epoch, counted from 1, after which training stops; 0: it does not stop.
int stops_after(const EarlyStoppingConfig& config, std::initializer_list<double> losses) {
  EarlyStopping stopping(config);
  int epoch = 0;
  for (const double loss : losses) {
    ++epoch;
    stopping.end_epoch(loss);
    if (stopping.stopped()) return epoch;
  }
  return 0;
}

TEST(EarlyStopping, WorseEpochsInARowStopIt) {
  EXPECT_EQ(stops_after({.patience = 2}, {1, .9, .95, .95}), 4);
  EXPECT_EQ(stops_after({.patience = 2}, {1, .9, .95, .8, .95, .9}), 6);
  EXPECT_EQ(stops_after({.patience = 1}, {1, 1.1}), 2);
}

TEST(EarlyStopping, AnEqualLossBeginsTheCountAnew) {
  EXPECT_EQ(stops_after({.patience = 2}, {1, .9, .9, .9, .9, .9}), 0);
  EXPECT_EQ(stops_after({.patience = 2}, {1, 1.1, 1, 1.1, 1, 1.1}), 0);
}

TEST(EarlyStopping, DeltaIsWhatALossMustGainAtLeast) {
  EXPECT_EQ(stops_after({.patience = 2, .delta = .25}, {1, .875, .8125}), 3);
  EXPECT_EQ(stops_after({.patience = 2, .delta = .25}, {1, .875, .75, .625, .5}), 0);
}

TEST(EarlyStopping, NanIsWorseAndNothingWatchesWithoutPatience) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(stops_after({.patience = 2}, {nan, nan}), 2);
  EXPECT_EQ(stops_after({.patience = 3}, {nan, nan, 1, nan, nan, nan}), 6);
  EXPECT_EQ(stops_after({}, {1, 2, 3, 4}), 0);
  EXPECT_FALSE(EarlyStopping({}).watches_validation());
}

TEST(EarlyStopping, ContinuesFromItsState) {
  const std::initializer_list<double> losses = {1, 1.0 / 3, .4, 1.0 / 3, .5, .5};
  EarlyStopping whole({.patience = 2});
  for (const double loss : losses) {
    EarlyStopping resumed({.patience = 2});
    resumed.restore(whole.state());
    EXPECT_EQ(resumed.state(), whole.state());
    whole.end_epoch(loss);
    resumed.end_epoch(loss);
    EXPECT_EQ(resumed.stopped(), whole.stopped());
  }
  EXPECT_TRUE(whole.stopped());
  EarlyStopping patient({.patience = 3});
  patient.restore(whole.state());
  EXPECT_FALSE(patient.stopped());
  patient.restore(std::nullopt);  // of a run that watched nothing
  EXPECT_EQ(patient.state(), whole.state());
}

}  // namespace
}  // namespace lockstep::trainers::early_stopping_test
