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
  ++sums_.steps;
}

StepMetrics EpochProgress::update(const WindowTotals& totals, int64_t steps_left, double lr) {
  for (const float loss : totals.losses) sums_.loss += loss;
  sums_.correct1 += totals.correct1;
  sums_.correct5 += totals.correct5;
  sums_.images += totals.images;
  const double now_s = seconds();
  const double window_s = now_s - window_start_s_;
  window_start_s_ = now_s;
  const auto steps_done = static_cast<double>(sums_.steps);
  const auto steps_timed = static_cast<double>(sums_.steps - before_.steps);
  const double step_s = now_s / steps_timed;

  RankSeconds sum;
  for (const RankSeconds& rank : totals.ranks) sum += rank;
  const auto rank_steps = static_cast<double>(totals.losses.size() * totals.ranks.size());
  const SlowestRank slowest = slowest_rank(totals.ranks);
  const LoaderStall stall = loader_stall(totals.ranks);
  return {.step_s = step_s_,
          .step_s_avg = step_s,
          .data_s = data_s_,
          .data_s_avg = data_sum_s_ / steps_timed,
          .loss = totals.losses.back(),
          .loss_avg = sums_.loss / steps_done,
          .acc1 = percent(totals.correct1, totals.images),
          .acc1_avg = percent(sums_.correct1, sums_.images),
          .acc5 = percent(totals.correct5, totals.images),
          .acc5_avg = percent(sums_.correct5, sums_.images),
          .images_per_s = static_cast<double>(totals.images) / window_s,
          .images_per_s_avg = static_cast<double>(images()) / now_s,
          .eta_s = step_s * static_cast<double>(steps_left),
          .lr = lr,
          .ranks = static_cast<int>(totals.ranks.size()),
          .comm_exposed_s = sum.exposed / rank_steps,
          .comm_hidden_s = sum.hidden / rank_steps,
          .slowest_rank = slowest.rank,
          .skew = slowest.skew,
          .loader_waited = stall.waited,
          .loader_busy_with = stall.on};
}

}  // namespace lockstep::trainers
