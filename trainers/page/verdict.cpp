#include "trainers/page/verdict.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "core/digest.h"
#include "engine/step/step_figures.h"
#include "trainers/report/number_text.h"

namespace lockstep::trainers {
namespace {

constexpr int64_t kFewLines = 5, kFewSteps = 50;
constexpr double kClearlySlower = 0.25;  // than the other ranks' mean
constexpr double kOften = 0.6;           // of the lines
constexpr double kExposed = 0.4;         // of a step

double percent(double share) {
  return 100 * share;
}

SlowestRank slowest_of(const ExchangeSummary& exchange) {
  std::vector<RankSeconds> ranks;
  ranks.reserve(exchange.ranks.size());
  for (const ExchangeSummary::Rank& rank : exchange.ranks) ranks.push_back(rank.seconds);
  return slowest_rank(ranks);
}

// The rank that came last waited for no peer: what it lost, the exchange itself took.
double exposed_share(const ExchangeSummary& exchange) {
  const auto& last = *std::ranges::min_element(
      exchange.ranks, {}, [](const ExchangeSummary::Rank& rank) { return rank.seconds.exposed; });
  const double step = last.seconds.own + last.seconds.exposed;
  return step > 0 ? last.seconds.exposed / step : 0;
}

// Returns the cores of a host whose ranks have more threads than cores; 0: there is none.
int64_t shared_cores(const RunRecord& record) {
  std::map<std::string, int64_t> threads, cores;
  for (const RankRecord& rank : record.ranks) {
    if (rank.device != "cpu" || rank.cores == 0) continue;
    threads[rank.host] += rank.threads;
    cores[rank.host] = std::max(cores[rank.host], rank.cores);
  }
  for (const auto& [host, count] : cores) {
    if (threads[host] > count) return count;
  }
  return 0;
}

std::string reached(const ViewedRun& run) {
  const std::string steps = steps_text(run.curves.last_step(), skipped_steps_of(run));
  const std::string arch = flag_of(run.record, "arch");
  if (run.state == RunState::kRunning) {
    return fmt::format("{} is training and has logged {} so far.", arch, steps);
  }
  if (run.state == RunState::kBroken) {
    return fmt::format("{} was killed after {}: its process is gone.", arch, steps);
  }
  if (run.state != RunState::kDone && run.record.exit_code) {
    return fmt::format("{} ended after {} with {}.", arch, steps, exit_text(*run.record.exit_code));
  }
  if (evaluation_of(run) == nullptr) {
    return fmt::format(
        "{} took {} in {} and was not evaluated.", arch, steps, seconds_text(seconds_of(run)));
  }
  const Evaluation& evaluation = *evaluation_of(run);
  const Curve& accuracy = run.curves.curve("val/acc1");
  const bool was_better = !accuracy.empty() && accuracy.best_high() > evaluation.acc1() + 1e-9;
  const std::string after =
      run.curves.train_lines() == 0
          ? "evaluated"
          : fmt::format("after {} in {}", steps, seconds_text(seconds_of(run)));
  return fmt::format(
      "{} reached {:.2f} % ({} of {} test images) {}{}.",
      arch,
      evaluation.acc1(),
      count_text(evaluation.correct1),
      count_text(evaluation.total),
      after,
      was_better ? fmt::format("; its best was {:.2f} %", accuracy.best_high()) : "");
}

std::string bound_text(const SpeedVerdict& speed) {
  switch (speed.bound) {
    case RunBound::kLoader:
      return fmt::format(
          "steps waited {:.0f} % of their time for images (the loader was busy with {}), "
          "so the loader bound it",
          percent(speed.share),
          speed.busy.empty() ? "unknown work" : speed.busy);
    case RunBound::kSlowRank:
      return fmt::format("rank {} was {:.0f} % slower than the others, which waited for it",
                         speed.rank,
                         percent(speed.share));
    case RunBound::kCommunication:
      return fmt::format(
          "{:.0f} % of a step was exposed communication on every rank, so the exchange bound it",
          percent(speed.share));
    case RunBound::kSharedCores:
      return fmt::format(
          "the threads of its ranks shared {} cores, so waiting says nothing about the exchange",
          speed.cores);
    case RunBound::kCompute:
      return "no rank, loader or exchange held it up, so the computation bound it";
    case RunBound::kUnknown:
      break;
  }
  return "the figures do not say what bound it";
}

std::string speed(const ViewedRun& run) {
  const auto ranks = std::ssize(run.record.ranks);
  const std::string where = ranks == 1 ? "one rank" : fmt::format("{} ranks", ranks);
  const double images_per_s = images_per_s_of(run);
  if (images_per_s <= 0) return fmt::format("It took no step on {}.", where);
  return fmt::format("It trained {} images/s on {}; {}.",
                     count_text(static_cast<int64_t>(images_per_s)),
                     where,
                     bound_text(speed_verdict(run)));
}

std::string bits(const ViewedRun& run) {
  const RunRecord& record = run.record;
  const std::string digest =
      record.digest ? fmt::format("Its weights have the digest {}", to_hex(*record.digest))
                    : std::string("It left no digest of final weights");
  if (record.plan.same_bits.empty()) {
    return fmt::format("{}; its bits depend on the number of ranks.", digest);
  }
  return fmt::format(
      "{}; the run has the same bits on {} ranks.", digest, same_bits_list(record.plan));
}

}  // namespace

SpeedVerdict speed_verdict(const ViewedRun& run) {
  const RunCurves& curves = run.curves;
  if (curves.train_lines() < kFewLines || curves.last_step() < kFewSteps) return {};
  const Curve& waited = curves.curve("train/loader_waited");
  if (!waited.empty() && waited.mean() >= kLoaderWaits) {
    return {.bound = RunBound::kLoader, .share = waited.mean(), .busy = curves.loader_busy_with()};
  }
  const std::optional<ExchangeSummary>& exchange = run.record.communication;
  if (!exchange || exchange->ranks.empty()) return {};
  if (exchange->ranks.size() == 1) return {.bound = RunBound::kCompute};
  const SlowestRank slowest = slowest_of(*exchange);
  const auto times = curves.times_slow().find(slowest.rank);
  const double often =
      times == curves.times_slow().end()
          ? 0
          : static_cast<double>(times->second) / static_cast<double>(curves.train_lines());
  if (slowest.skew >= kClearlySlower && often >= kOften) {
    return {.bound = RunBound::kSlowRank, .share = slowest.skew, .rank = slowest.rank};
  }
  if (const int64_t cores = shared_cores(run.record); cores > 0) {
    return {.bound = RunBound::kSharedCores, .cores = cores};
  }
  const double exposed = exposed_share(*exchange);
  if (exposed >= kExposed) return {.bound = RunBound::kCommunication, .share = exposed};
  return {.bound = slowest.skew < kSlowSkew ? RunBound::kCompute : RunBound::kUnknown};
}

std::vector<std::string> verdict(const ViewedRun& run) {
  return {reached(run), speed(run), bits(run)};
}

std::string exit_text(ExitCode code) {
  const auto number = static_cast<int>(code);
  switch (code) {
    case ExitCode::kDone:
      return "exit code 0";
    case ExitCode::kInternal:
      return fmt::format("exit code {}: an internal error", number);
    case ExitCode::kUsage:
      return fmt::format("exit code {}: wrong usage", number);
    case ExitCode::kData:
      return fmt::format("exit code {}: a fault of the data", number);
    case ExitCode::kCheckpoint:
      return fmt::format("exit code {}: a checkpoint was refused", number);
    case ExitCode::kEnvironment:
      return fmt::format("exit code {}: a fault of the machine", number);
    case ExitCode::kDiverged:
      return fmt::format("exit code {}: the loss or the ranks diverged, or no step was applied",
                         number);
    case ExitCode::kStopped:
      return fmt::format("exit code {}: stopped on a signal, weights saved", number);
    case ExitCode::kPeerLost:
      return fmt::format("exit code {}: a rank was lost", number);
  }
  return fmt::format("exit code {}", number);
}

std::string same_bits_list(const RunPlan& plan) {
  return fmt::format("{}", fmt::join(plan.same_bits, ", "));
}

}  // namespace lockstep::trainers
