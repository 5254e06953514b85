#include "trainers/output/apex_lines.h"

#include <fmt/format.h>

namespace lockstep::trainers {
namespace {

std::string meter(std::string_view name, double value, double average) {
  return fmt::format("\t{} {:.3f} ({:.3f})", name, value, average);
}

}  // namespace

std::string apex_progress_line(int epoch, int64_t step, int64_t steps, const StepMetrics& m) {
  return fmt::format("Epoch: [{}][{}/{}]", epoch, step, steps) +
         meter("Time", m.step_s, m.step_s_avg) +
         meter("Speed", m.images_per_s, m.images_per_s_avg) +
         fmt::format("\tLoss {:.10f} ({:.4f})", m.loss, m.loss_avg) +
         meter("Prec@1", m.acc1, m.acc1_avg) + meter("Prec@5", m.acc5, m.acc5_avg);
}

std::string apex_test_line(int64_t batch, int64_t batches, const TestMetrics& m) {
  return fmt::format("Test: [{}/{}]", batch, batches) + meter("Time", m.batch_s, m.batch_s_avg) +
         meter("Speed", m.images / m.batch_s, m.images_avg / m.batch_s_avg) +
         fmt::format("\tLoss {:.4f} ({:.4f})", m.loss, m.loss_avg) +
         meter("Prec@1", m.acc1, m.acc1_avg) + meter("Prec@5", m.acc5, m.acc5_avg);
}

std::string apex_accuracy_line(double acc1, double acc5) {
  return fmt::format(" * Prec@1 {:.3f} Prec@5 {:.3f}", acc1, acc5);
}

}  // namespace lockstep::trainers
