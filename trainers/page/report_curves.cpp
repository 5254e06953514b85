#include <algorithm>

#include <fmt/core.h>

#include "trainers/page/chart.h"
#include "trainers/page/report_parts.h"

namespace lockstep::trainers {
namespace {

// A curve of each run that has it, under the runs' names; under `label` where there is one run.
struct Series {
  const char* curve = "";
  const char* label = "";
  int color = 0;  // where there is one run
  bool marks = false;
  double scale = 1;
};

class CurveChart {
 public:
  CurveChart(ViewedRuns runs, const ChartFrame& frame) : runs_(runs), frame_(frame) {
    frame_.x_label = "step";
  }

  CurveChart& add(const Series& series) {
    for (size_t i = 0; i < runs_.size(); ++i) {
      const std::span<const CurvePoint> points = runs_[i].curves.curve(series.curve).points();
      if (points.empty()) continue;
      std::vector<CurvePoint>& kept = points_.emplace_back(points.begin(), points.end());
      for (CurvePoint& point : kept) {
        point.mean *= series.scale;
        point.low *= series.scale;
        point.high *= series.scale;
      }
      const bool one = runs_.size() == 1;
      lines_.push_back({.label = one ? series.label : runs_[i].name,
                        .color = one ? series.color : static_cast<int>(i % 8),
                        .marks = series.marks});
    }
    return *this;
  }

  std::string html() {
    for (size_t i = 0; i < lines_.size(); ++i) lines_[i].points = points_[i];
    return line_chart(frame_, lines_);
  }

 private:
  ViewedRuns runs_;
  ChartFrame frame_;
  std::vector<std::vector<CurvePoint>> points_;
  std::vector<ChartLine> lines_;
};

// Whether a run's curve has more than one value.
bool changes(ViewedRuns runs, const char* name) {
  return std::ranges::any_of(runs, [&](const ViewedRun& run) {
    const Curve& curve = run.curves.curve(name);
    return !curve.empty() && curve.best_low() < curve.best_high();
  });
}

// Losses that fall far are shown on a logarithmic axis.
bool falls_far(ViewedRuns runs) {
  return std::ranges::any_of(runs, [](const ViewedRun& run) {
    const Curve& loss = run.curves.curve("train/loss");
    return !loss.empty() && loss.best_low() > 0 && loss.best_high() > 20 * loss.best_low();
  });
}

std::string learning_charts(ViewedRuns runs) {
  const bool far = falls_far(runs);
  const char* const unit = far ? "nats per image, logarithmic" : "nats per image";
  const Series train_loss{"train/loss", "training", 0};
  const Series val_loss{"val/loss", "test", 1, true};
  const Series train_acc{"train/acc1", "training", 0};
  const Series val_acc{"val/acc1", "test", 1, true};
  const Series average{"val-ema/acc1", "moving average", 2, true};
  if (runs.size() == 1) {
    return CurveChart(runs, {.title = "Loss", .unit = unit, .logarithmic = far})
               .add(train_loss)
               .add(val_loss)
               .html() +
           CurveChart(runs, {.title = "Accuracy", .unit = "top 1, %"})
               .add(train_acc)
               .add(val_acc)
               .add(average)
               .html();
  }
  const auto chart = [&](const char* title, const char* of, const Series& series) {
    return CurveChart(runs, {.title = title, .unit = of, .logarithmic = far && of == unit})
        .add(series)
        .html();
  };
  return chart("Training loss", unit, train_loss) + chart("Test loss", unit, val_loss) +
         chart("Training accuracy", "top 1, %", train_acc) +
         chart("Test accuracy", "top 1, %", val_acc);
}

}  // namespace

std::string curve_charts(ViewedRuns runs) {
  const bool exchanges =
      std::ranges::any_of(runs, [](const ViewedRun& run) { return run.record.ranks.size() > 1; });
  const bool has_rates = changes(runs, "train/lr");
  const bool has_scales = changes(runs, "train/loss_scale");
  std::string charts = learning_charts(runs);
  // Two charts a row: throughput has one of its own where the rest is an even number.
  const int others = int{exchanges} + int{has_rates} + int{has_scales};
  charts += CurveChart(runs,
                       {.title = "Throughput",
                        .unit = "images/s, all ranks",
                        .from_zero = true,
                        .wide = others % 2 == 0})
                .add({"train/img_s", "", 2})
                .html();
  if (exchanges) {
    charts += CurveChart(runs,
                         {.title = "Exposed communication",
                          .unit = "ms per step, mean of ranks",
                          .from_zero = true})
                  .add({"train/comm_exposed_s", "", 1, false, 1e3})
                  .html();
  }
  if (has_rates) {
    charts += CurveChart(runs, {.title = "Learning rate", .from_zero = true})
                  .add({"train/lr", "", 3})
                  .html();
  }
  if (has_scales) {
    charts += CurveChart(runs, {.title = "Loss scale", .unit = "logarithmic", .logarithmic = true})
                  .add({"train/loss_scale", "", 4})
                  .html();
  }
  return charts.empty() ? "" : "<div class=\"grid\">\n" + charts + "</div>\n";
}

}  // namespace lockstep::trainers
