#include "inspect/plan/scale_report.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "core/error.h"
#include "core/words.h"

namespace lockstep::trainers {

std::vector<TimedTraining> parse_timings(std::span<const std::string> pairs) {
  std::vector<TimedTraining> timings;
  for (const std::string& pair : pairs) {
    const std::vector<std::string_view> words = split_words(pair, ':');
    const auto gpus = words.size() == 2 ? parse_int(words[0]) : std::nullopt;
    const auto seconds = words.size() == 2 ? parse_float(words[1]) : std::nullopt;
    if (!gpus || !seconds || *gpus < 1 || !(*seconds > 0)) {
      throw UsageError(fmt::format("bad value: {}", printable(pair)),
                       "each training is GPUS:SECONDS, both above 0",
                       "lockstep scale-report 2:74211 4:39536");
    }
    if (std::ranges::count(timings, *gpus, &TimedTraining::gpus) > 0) {
      throw UsageError(fmt::format("{} GPUs are given twice", *gpus),
                       "the report has one row for a number of GPUs",
                       "one of the two");
    }
    timings.push_back({.gpus = *gpus, .seconds = *seconds});
  }
  return timings;
}

std::vector<ScaleRow> scale_rows(std::vector<TimedTraining> trainings,
                                 int64_t images,
                                 double epochs) {
  std::ranges::sort(trainings, {}, &TimedTraining::gpus);
  std::vector<ScaleRow> rows;
  for (const TimedTraining& training : trainings) {
    const TimedTraining& first = trainings.front();
    const double speedup = first.seconds / training.seconds;
    const double gpus = static_cast<double>(training.gpus) / static_cast<double>(first.gpus);
    rows.push_back({.gpus = training.gpus,
                    .seconds = training.seconds,
                    .images_per_s = static_cast<double>(images) * epochs / training.seconds,
                    .speedup = speedup,
                    .efficiency = speedup / gpus});
  }
  return rows;
}

std::string scale_report(std::span<const ScaleRow> rows) {
  std::string text = fmt::format("{:>6} {:>10} {:>10} {:>12} {:>8} {:>10}\n",
                                 "GPUs",
                                 "seconds",
                                 "images/s",
                                 "images/s/GPU",
                                 "speed-up",
                                 "efficiency");
  for (const ScaleRow& row : rows) {
    text += fmt::format("{:>6} {:>10.0f} {:>10.0f} {:>12.0f} {:>8.2f} {:>9.0f}%\n",
                        row.gpus,
                        row.seconds,
                        row.images_per_s,
                        row.images_per_s / static_cast<double>(row.gpus),
                        row.speedup,
                        100 * row.efficiency);
  }
  return text;
}

}  // namespace lockstep::trainers
