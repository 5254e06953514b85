#include "trainers/output/apex_lines.h"

#include <gtest/gtest.h>

namespace lockstep::trainers::apex_lines_test {
namespace {

TEST(ApexLines, AreMainAmps) {
  EXPECT_EQ(apex_progress_line(3,
                               10,
                               770,
                               {.step_s = 0.0214,
                                .step_s_avg = 0.5,
                                .loss = 6.91234567891,
                                .loss_avg = 7.01239,
                                .acc1 = 0.125,
                                .acc1_avg = 12.3456,
                                .acc5 = 1,
                                .acc5_avg = 50,
                                .images_per_s = 1234.5,
                                .images_per_s_avg = 1000}),
            "Epoch: [3][10/770]\tTime 0.021 (0.500)\tSpeed 1234.500 (1000.000)\t"
            "Loss 6.9123456789 (7.0124)\tPrec@1 0.125 (12.346)\tPrec@5 1.000 (50.000)");
  EXPECT_EQ(apex_test_line(20,
                           50,
                           {.batch_s = 0.5,
                            .batch_s_avg = 0.25,
                            .images = 100,
                            .images_avg = 90,
                            .loss = 1.23456,
                            .loss_avg = 2,
                            .acc1 = 61.33,
                            .acc1_avg = 43.2,
                            .acc5 = 90,
                            .acc5_avg = 80.5}),
            "Test: [20/50]\tTime 0.500 (0.250)\tSpeed 200.000 (360.000)\tLoss 1.2346 (2.0000)\t"
            "Prec@1 61.330 (43.200)\tPrec@5 90.000 (80.500)");
  EXPECT_EQ(apex_accuracy_line(76.15, 92.87), " * Prec@1 76.150 Prec@5 92.870");
}

}  // namespace
}  // namespace lockstep::trainers::apex_lines_test
