#include "trainers/loop/epoch_progress.h"

namespace lockstep::trainers {
namespace {

double percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double EpochProgress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

void EpochProgress::end_step(double step_s, double data_s) {
  step_s_ = step_s;
  data_s_ = data_s;
  data_sum_s_ += data_s;
  ++done_;
}

StepMetrics EpochProgress::update(const WindowTotals& totals, int64_t steps_left, double lr) {
  for (const float loss : totals.losses) loss_sum_ += loss;
  correct1_ += totals.correct1;
  correct5_ += totals.correct5;
  images_ += totals.images;
  const double now_s = seconds();
  const double window_s = now_s - window_start_s_;
  window_start_s_ = now_s;
  const auto steps_done = static_cast<double>(done_);
  const double step_s = now_s / steps_done;

  RankSeconds sum;
  for (const RankSeconds& rank : totals.ranks) sum += rank;
  const auto rank_steps = static_cast<double>(totals.losses.size() * totals.ranks.size());
  const SlowestRank slowest = slowest_rank(totals.ranks);
  return {.step_s = step_s_,
          .step_s_avg = step_s,
          .data_s = data_s_,
          .data_s_avg = data_sum_s_ / steps_done,
          .loss = totals.losses.back(),
          .loss_avg = loss_sum_ / steps_done,
          .acc1 = percent(totals.correct1, totals.images),
          .acc1_avg = percent(correct1_, images_),
          .acc5 = percent(totals.correct5, totals.images),
          .acc5_avg = percent(correct5_, images_),
          .images_per_s = static_cast<double>(totals.images) / window_s,
          .eta_s = step_s * static_cast<double>(steps_left),
          .lr = lr,
          .ranks = static_cast<int>(totals.ranks.size()),
          .comm_exposed_s = sum.exposed / rank_steps,
          .comm_hidden_s = sum.hidden / rank_steps,
          .slowest_rank = slowest.rank,
          .skew = slowest.skew};
}

}  // namespace lockstep::trainers
