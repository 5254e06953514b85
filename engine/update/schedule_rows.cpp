#include "engine/update/schedule_rows.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <fmt/ranges.h>

#include "core/error.h"
#include "core/words.h"

namespace lockstep {
namespace {

using ranges::kFrom1;
using ranges::kRates;
using ranges::kUnit;
using ranges::kUpToAMillion;

double after_cuts(const ScheduleOptions& options, int64_t cuts) {
  return std::pow(options.gamma, static_cast<double>(cuts));
}

// As PyTorch has it: the top lies at pct_start * length - 1, the bottom at the last step.
double one_cycle(const OneCycleOptions& options, int64_t at, int64_t length) {
  const double first = 1 / options.div;
  const double top = options.pct_start * static_cast<double>(length) - 1;
  const auto last = static_cast<double>(length - 1);
  const double now = std::min(static_cast<double>(at), last);
  const auto between = [](double from, double to, double part) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
  };
  if (now <= top) return top == 0 ? 1 : between(first, 1, now / top);
  return between(1, first / options.final_div, (now - top) / (last - top));
}

double triangular(const TriangularOptions& options, int64_t at, int64_t length) {
  const auto part = [](int64_t done, int64_t all) {
    return static_cast<double>(done) / static_cast<double>(all);
  };
  const auto rise = static_cast<int64_t>(static_cast<double>(length) * options.peak);
  if (at < rise) return options.start + (1 - options.start) * part(at, rise);
  return at == rise ? 1 : 1 - (1 - options.end) * part(at - rise, length - rise);
}

using Options = ScheduleOptions;
using Point = SchedulePoint;

// One row per schedule reads better than one field per line. The five with warmup.is_prefix begin
// after the warm-up, or with the run.
// clang-format off
constexpr ScheduleRow kRows[] = {
    {ScheduleKind::kConstant, "const", "the same rate all the time", "",
     [](const Options&, const Point&) { return 1.0; }},
    {ScheduleKind::kStep, "step", "a cut every so many epochs",
     "step_epochs gamma warmup.is_prefix",
     [](const Options& o, const Point& at) { return after_cuts(o, at.epoch / o.step_epochs); }},
    {ScheduleKind::kMultiStep, "multistep", "a cut at each milestone",
     "milestones gamma warmup.is_prefix",
     [](const Options& o, const Point& at) {
       const auto is_past = [&](int64_t cut) { return cut <= at.epoch; };
       return after_cuts(o, std::ranges::count_if(o.milestones, is_past));
     }},
    {ScheduleKind::kCosine, "cosine", "falls along half a cosine to the end of the run",
     "min_factor warmup.is_prefix",
     [](const Options& o, const Point& at) {
       const double fall = (1 - o.min_factor) * (1 + std::cos(std::numbers::pi * at.progress()));
       return o.min_factor + fall / 2;
     }},
    {ScheduleKind::kLinear, "linear", "falls to 0 at the end of the run", "warmup.is_prefix",
     [](const Options&, const Point& at) { return 1 - at.progress(); }},
    {ScheduleKind::kPoly, "poly", "linear's factor to a power", "power warmup.is_prefix",
     [](const Options& o, const Point& at) { return std::pow(1 - at.progress(), o.power); }},
    {ScheduleKind::kOneCycle, "onecycle", "rises and falls along half cosines",
     "one_cycle.pct_start one_cycle.div one_cycle.final_div",
     [](const Options& o, const Point& at) {
       return one_cycle(o.one_cycle, at.position, at.length);
     }, "one_cycle.pct_start"},
    {ScheduleKind::kTriangular, "triangular", "rises and falls along straight lines",
     "triangular.start triangular.peak triangular.end",
     [](const Options& o, const Point& at) {
       return triangular(o.triangular, at.position, at.length);
     }, "triangular.peak"},
    // Warm-up sets the rate at the ends of epochs 0 to W, which undoes a cut one epoch later.
    {ScheduleKind::kPlateau, "plateau", "a cut whenever the test metric stops improving",
     "gamma plateau.patience plateau.threshold plateau.on_accuracy plateau.upwards",
     [](const Options&, const Point& at) { return at.plateau_cuts; }},
};

constexpr double number(int64_t count) { return static_cast<double>(count); }

constexpr ScheduleMember kMembers[] = {
    {"step_epochs", kFrom1, [](const Options& o) { return number(o.step_epochs); }, true},
    {"gamma", kUnit, [](const Options& o) { return o.gamma; }},
    {"power", kRates, [](const Options& o) { return o.power; }},
    {"min_factor", kUnit, [](const Options& o) { return o.min_factor; }},
    {"warmup_epochs", kUpToAMillion, [](const Options& o) { return number(o.warmup_epochs); },
     true},
    {"warmup.decay", kUnit, [](const Options& o) { return o.warmup.decay; }},
    {"one_cycle.pct_start", kUnit, [](const Options& o) { return o.one_cycle.pct_start; }},
    {"one_cycle.div", kFrom1, [](const Options& o) { return o.one_cycle.div; }},
    {"one_cycle.final_div", kFrom1, [](const Options& o) { return o.one_cycle.final_div; }},
    {"triangular.start", kUnit, [](const Options& o) { return o.triangular.start; }},
    {"triangular.peak", kUnit, [](const Options& o) { return o.triangular.peak; }},
    {"triangular.end", kUnit, [](const Options& o) { return o.triangular.end; }},
    {"plateau.patience", kUpToAMillion, [](const Options& o) { return number(o.plateau.patience); },
     true},
    {"plateau.threshold", kUnit, [](const Options& o) { return o.plateau.threshold; }},
};
// clang-format on

// Whether warm-up's method may set the rate after the warm-up.
constexpr auto kHolds = [](const ScheduleRow& row) {
  return !row.uses("warmup.is_prefix") && row.rise.empty();
};

}  // namespace

bool ScheduleRow::uses(std::string_view member) const {
  const std::vector<std::string_view> used = split_words(members, ' ');
  return !member.empty() && std::ranges::find(used, member) != used.end();
}

std::span<const ScheduleRow> schedule_rows() {
  return kRows;
}

const ScheduleRow& row_of(ScheduleKind kind) {
  for (const ScheduleRow& row : kRows) {
    if (row.kind == kind) return row;
  }
  throw InternalError("[schedule] a kind has no row");
}

std::string schedule_names(std::string_view separator,
                           FunctionRef<bool(const ScheduleRow& row)> fits) {
  std::vector<std::string_view> names;
  for (const ScheduleRow& row : kRows) {
    if (fits(row)) names.push_back(row.name);
  }
  return fmt::format("{}", fmt::join(names, separator));
}

std::span<const ScheduleMember> schedule_members() {
  return kMembers;
}

void check_fits(const ScheduleOptions& options,
                FunctionRef<std::string(std::string_view member)> spelled) {
  const ScheduleRow& row = row_of(options.kind);
  if (row.uses("milestones") && options.milestones.empty()) {
    throw UsageError(
        fmt::format("{} {} needs milestones", spelled("kind"), row.name),
        fmt::format("it cuts the learning rate at the epochs of {}", spelled("milestones")),
        fmt::format("{} 100,150", spelled("milestones")));
  }
  if (!row.rise.empty() && options.warmup_epochs > 0) {
    throw UsageError(
        fmt::format("{} {} and {} contradict each other",
                    spelled("kind"),
                    row.name,
                    spelled("warmup_epochs")),
        "it begins with a rise of its own, a part of the run long",
        fmt::format("{} X instead of {}", spelled(row.rise), spelled("warmup_epochs")));
  }
  if (options.warmup.method == WarmupMethod::kFrozenCosine && !kHolds(row)) {
    throw UsageError(fmt::format("{} frozen-cosine needs {} {}",
                                 spelled("warmup.method"),
                                 spelled("kind"),
                                 schedule_names(" or ", kHolds)),
                     "it sets the rate after the warm-up too, and so do other schedules",
                     fmt::format("{} linear for a warm-up alone", spelled("warmup.method")));
  }
}

}  // namespace lockstep
