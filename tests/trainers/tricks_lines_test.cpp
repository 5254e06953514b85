// Item 0.19: the lines that tutorial 000's script prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainers/report/tutorial_lines.h"

namespace lockstep::trainers::tricks_lines_test {
namespace {

TEST(TricksLines, EpochIsPythons) {
  const TricksEpoch epoch = {.number = 7,
                             .epochs = 500,
                             .seconds = 3.2149,
                             .lr = .01,
                             .train_loss = .00233359,
                             .train_acc1 = 14.875,
                             .test = {.correct1 = 2031, .total = 10000, .loss = .00229}};
  EXPECT_EQ(tricks_epoch_line(epoch),
            "epoch: 007/500, time: 3.21s, learning_rate: 0.01, train_loss: 0.0023, train_acc: "
            "0.1487, valid_loss: 0.0023, valid_acc: 0.2031");
}

TEST(TricksLines, RatesAreAsPythonPrintsThem) {
  const auto rate = [](double lr) {
    const std::string line = tricks_epoch_line({.lr = lr, .test = {.total = 1}});
    const size_t begin = line.find("learning_rate: ") + 15;
    return line.substr(begin, line.find(',', begin) - begin);
  };
  EXPECT_EQ(rate(0), "0.0");
  EXPECT_EQ(rate(1), "1.0");
  EXPECT_EQ(rate(.1 * (7. / 10)), "0.06999999999999999");
  EXPECT_EQ(rate(1e-5), "1e-05");
}

TEST(TricksLines, StartNamesEachRank) {
  EXPECT_THAT(tricks_start_lines(2, "DDP_warmup"),
              ::testing::ElementsAre(
                  "Running DDP on rank: 0", "Running DDP on rank: 1", "Now Training: DDP_warmup"));
}

TEST(TricksLines, CutIsPyTorchs) {
  EXPECT_EQ(tricks_cut_line(11, .01),
            "Epoch    12: reducing learning rate of group 0 to 1.0000e-02.");
}

}  // namespace
}  // namespace lockstep::trainers::tricks_lines_test
