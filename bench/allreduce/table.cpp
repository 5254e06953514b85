#include "bench/allreduce/table.h"

#include <fmt/format.h>

#include "core/version.h"
#include "trainers/config/exchange_config.h"

namespace lockstep::bench {
namespace {

std::string side_text(const Side& side, int64_t bytes, int ranks) {
  const double bandwidth = gigabytes_per_second(bytes, side.mean());
  const std::string wrong =
      side.wrong == Side::kUnchecked ? "N/A" : fmt::format("{:g}", static_cast<double>(side.wrong));
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}",
                     fit(side.mean() * 1e6, 7),
                     fit(bandwidth, 6),
                     fit(bandwidth * bus_factor(ranks), 6),
                     wrong);
}

}  // namespace

std::string opening_text(const BenchOptions& options,
                         std::span<const trainers::RankPlace> places,
                         const std::string& transport,
                         const std::string& note) {
  const SizeRange& sizes = options.sizes;
  const bool multiply = sizes.step_factor > 1;
  std::string text = fmt::format(
      "# lockstep version {} ranks {} transport {}\n"
      "# Collective test starting: bench_allreduce\n"
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} "
      "agg iters: 1 validation: {} graph: 0 unalign: 0\n",
      version(),
      places.size(),
      transport,
      sizes.min_bytes,
      sizes.max_bytes,
      multiply ? sizes.step_factor : sizes.step_bytes,
      multiply ? "factor" : "bytes",
      options.warmup_iterations,
      options.iterations,
      options.checks);
  if (!note.empty()) text += fmt::format("# {}\n", note);
  text += "#\n# Using devices\n";
  for (size_t rank = 0; rank < places.size(); ++rank) {
    text += fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device cpu\n",
                        rank,
                        0,
                        places[rank].pid,
                        places[rank].host);
  }
  return text;
}

std::string column_text(Algorithm algorithm) {
  constexpr std::string_view kFormat =
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  "
      "{:>6}\n";
  return fmt::format("#\n# Algorithm: {}\n#\n", trainers::name_of(algorithm)) +
         fmt::format(
             "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}           out-of-place       "
             "                in-place\n",
             "",
             "",
             "",
             "",
             "") +
         fmt::format(kFormat,
                     "size",
                     "count",
                     "type",
                     "redop",
                     "root",
                     "time",
                     "algbw",
                     "busbw",
                     "#wrong",
                     "time",
                     "algbw",
                     "busbw",
                     "#wrong") +
         fmt::format(kFormat,
                     "(B)",
                     "(elements)",
                     "",
                     "",
                     "",
                     "(us)",
                     "(GB/s)",
                     "(GB/s)",
                     "",
                     "(us)",
                     "(GB/s)",
                     "(GB/s)",
                     "");
}

std::string row_text(const Measurement& measurement, int ranks) {
  const int64_t bytes = measurement.bytes();
  return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:>6}",
                     bytes,
                     measurement.count,
                     datatype_name(measurement.dtype),
                     "sum",
                     -1) +
         side_text(measurement.out_of_place, bytes, ranks) +
         side_text(measurement.in_place, bytes, ranks) + "\n";
}

std::string closing_text(const Totals& totals) {
  return fmt::format("# {:<20} : {} {}\n# {:<20} : {:g}\n#\n",
                     "Out of bounds values",
                     totals.failed,
                     totals.failed == 0 ? "OK" : "FAILED",
                     "Avg bus bandwidth",
                     totals.bus_bandwidth);
}

std::string fit(double value, size_t width) {
  for (int decimals = 2; decimals >= 0; --decimals) {
    std::string text = fmt::format("{:.{}f}", value, decimals);
    if (text.size() <= width) return text;
  }
  return fmt::format("{:.0e}", value);
}

}  // namespace lockstep::bench
