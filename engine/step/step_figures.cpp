#include "engine/step/step_figures.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "comm/gather.h"
#include "core/cuda/memory.h"
#include "core/transfer.h"
#include "core/tree.h"

namespace lockstep {

SlowestRank slowest_rank(std::span<const RankSeconds> ranks) {
  const auto slowest = std::ranges::max_element(ranks, std::less(), &RankSeconds::own);
  double others = 0;
  for (const RankSeconds& rank : ranks) others += rank.own;
  others -= slowest->own;
  if (others <= 0) return {};
  const double mean = others / static_cast<double>(ranks.size() - 1);
  return {.rank = static_cast<int>(slowest - ranks.begin()), .skew = slowest->own / mean - 1};
}

LoaderStall loader_stall(std::span<const RankSeconds> ranks) {
  const auto waited = [](const RankSeconds& rank) {
    const double all = rank.own + rank.exposed;
    return all > 0 ? rank.loader.waited / all : 0;
  };
  const RankSeconds& longest = *std::ranges::max_element(ranks, std::less(), waited);
  const data::LoadSeconds& work = longest.loader.work;
  LoaderStall stall{.share = waited(longest), .busy_with = "augment"};
  if (work.decode >= work.augment) stall.busy_with = "decode";
  if (work.disk >= std::max(work.decode, work.augment)) stall.busy_with = "disk";
  return stall;
}

void StepWindow::add(const nn::CrossEntropy& result) {
  const MicroStep figures{
      result.loss.value(),
      result.target_rank,
      result.target_rank.defined() ? result.target_rank.numel() : result.loss.shards().images()};
  if (figures.losses.device() != Device::kCuda) {
    micro_steps_.push_back(figures);
    return;
  }
  stream_ = &result.loss.stream();
  const MicroStep& pinned = next_pinned(figures);
  micro_steps_.push_back(
      {pinned.losses.slice(0, figures.losses.numel()), Tensor(), figures.images});
  transfer(*stream_, figures.losses, micro_steps_.back().losses);
  if (!figures.target_ranks.defined()) return;
  micro_steps_.back().target_ranks = pinned.target_ranks.slice(0, figures.images);
  transfer(*stream_, figures.target_ranks, micro_steps_.back().target_ranks);
}

StepWindow::MicroStep& StepWindow::next_pinned(const MicroStep& sizes) {
  const auto fit = [](Tensor& memory, const Tensor& wanted) {
    if (memory.defined() && memory.numel() >= wanted.numel()) return;
    memory = cuda::empty_pinned(wanted.shape(), wanted.dtype());
  };
  if (pinned_.size() == micro_steps_.size()) pinned_.emplace_back();
  MicroStep& memory = pinned_[micro_steps_.size()];
  fit(memory.losses, sizes.losses);
  if (sizes.target_ranks.defined()) fit(memory.target_ranks, sizes.target_ranks);
  return memory;
}

void StepWindow::end_step(const RankSeconds& seconds) {
  step_ends_.push_back(micro_steps_.size());
  seconds_ += seconds;
}

HitCounts StepWindow::count() const {
  HitCounts counts;
  for (const MicroStep& micro_step : micro_steps_) {
    if (!micro_step.target_ranks.defined()) {
      counts.images += micro_step.images;
      continue;
    }
    for (const int32_t rank : micro_step.target_ranks.span<int32_t>()) counts.add(rank);
  }
  return counts;
}

float StepWindow::loss_of(std::span<const MicroStep> step) const {
  std::vector<std::vector<float>> sums;
  for (const MicroStep& micro_step : step) {
    const std::span<const float> leaves = micro_step.losses.span<float>();
    sums.emplace_back(leaves.begin(), leaves.end());
  }
  for_each_tree_merge(std::ssize(sums), [&](int64_t into, int64_t from) {
    std::vector<float>& left = sums[static_cast<size_t>(into)];
    std::ranges::transform(left, sums[static_cast<size_t>(from)], left.begin(), std::plus());
  });
  std::vector<float>& shards = sums.front();
  for_each_tree_merge(std::ssize(shards), [&](int64_t into, int64_t from) {
    shards[static_cast<size_t>(into)] += shards[static_cast<size_t>(from)];
  });
  return shards.empty() ? 0 : shards.front();
}

WindowTotals StepWindow::exchange(Communicator& ranks, bool stop, int64_t skipped_photos) {
  if (stream_ != nullptr) stream_->synchronize();
  std::vector<float> losses;
  size_t begin = 0;
  for (const size_t end : step_ends_) {
    losses.push_back(loss_of(std::span(micro_steps_).subspan(begin, end - begin)));
    begin = end;
  }
  const HitCounts mine = count();
  const auto since = std::exchange(since_, std::chrono::steady_clock::now());
  const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(since_ - since);
  std::array<int64_t, 6> counts = {
      mine.correct1, mine.correct5, mine.images, stop ? 1 : 0, skipped_photos, waited.count()};
  ranks.all_reduce_sum(std::span<int64_t>(counts));
  ranks.all_reduce_sum(std::span<float>(losses));
  WindowTotals totals{.losses = std::move(losses),
                      .correct1 = counts[0],
                      .correct5 = counts[1],
                      .images = counts[2],
                      .stop = counts[3] != 0,
                      .seconds = static_cast<double>(counts[5]) * 1e-6 / ranks.size(),
                      .skipped_photos = counts[4],
                      .ranks = comm::gather_value(ranks, seconds_)};
  micro_steps_.clear();
  step_ends_.clear();
  seconds_ = {};
  return totals;
}

namespace {

double percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double EpochProgress::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

double EpochProgress::loss() const {
  return sums_.loss * static_cast<double>(step_images_) / static_cast<double>(sums_.images);
}

double EpochProgress::acc1() const {
  return percent(sums_.correct1, sums_.images);
}

double EpochProgress::acc5() const {
  return percent(sums_.correct5, sums_.images);
}

void EpochProgress::end_step(double step_s, double data_s) {
  step_s_ = step_s;
  data_s_ = data_s;
  data_sum_s_ += data_s;
  ++sums_.steps;
}

StepMetrics EpochProgress::averages(double lr) const {
  StepMetrics metrics{.loss_avg = loss(), .acc1_avg = acc1(), .acc5_avg = acc5(), .lr = lr};
  if (sums_.steps == before_.steps) return metrics;
  const auto steps = static_cast<double>(sums_.steps - before_.steps);
  metrics.step_s_avg = last_update_s_ / steps;
  metrics.data_s_avg = data_sum_s_ / steps;
  metrics.images_per_s_avg = static_cast<double>(images()) / last_update_s_;
  return metrics;
}

StepMetrics EpochProgress::update(const WindowTotals& totals, int64_t steps_left, double lr) {
  const int64_t before_last = step_images_ * (std::ssize(totals.losses) - 1);
  const double part_of_last =
      static_cast<double>(totals.images - before_last) / static_cast<double>(step_images_);
  for (const float loss : std::span(totals.losses).first(totals.losses.size() - 1)) {
    sums_.loss += loss;
  }
  sums_.loss += part_of_last * totals.losses.back();
  sums_.correct1 += totals.correct1;
  sums_.correct5 += totals.correct5;
  sums_.images += totals.images;
  last_update_s_ = seconds();
  line_.steps += std::ssize(totals.losses);
  line_.correct1 += totals.correct1;
  line_.correct5 += totals.correct5;
  line_.images += totals.images;
  line_.ranks.resize(totals.ranks.size());
  RankSeconds sum;
  for (size_t rank = 0; rank < totals.ranks.size(); ++rank) {
    line_.ranks[rank] += totals.ranks[rank];
    sum += line_.ranks[rank];
  }
  const auto rank_steps = static_cast<double>(line_.steps * std::ssize(line_.ranks));
  const SlowestRank slowest = slowest_rank(line_.ranks);
  const LoaderStall stall = loader_stall(line_.ranks);
  StepMetrics metrics = averages(lr);
  metrics.step_s = step_s_;
  metrics.data_s = data_s_;
  metrics.loss = totals.losses.back();
  metrics.acc1 = percent(line_.correct1, line_.images);
  metrics.acc5 = percent(line_.correct5, line_.images);
  metrics.images_per_s = static_cast<double>(line_.images) / (last_update_s_ - line_.start_s);
  metrics.eta_s = metrics.step_s_avg * static_cast<double>(steps_left);
  metrics.ranks = static_cast<int>(line_.ranks.size());
  metrics.comm_exposed_s = sum.exposed / rank_steps;
  metrics.comm_hidden_s = sum.hidden / rank_steps;
  metrics.slowest_rank = slowest.rank;
  metrics.skew = slowest.skew;
  metrics.loader_waited = stall.share;
  metrics.loader_busy_with = stall.busy_with;
  return metrics;
}

}  // namespace lockstep
