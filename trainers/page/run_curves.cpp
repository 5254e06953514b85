#include "trainers/page/run_curves.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace lockstep::trainers {
namespace {

constexpr size_t kSpans = 120;  // at most, even: what a strip of a chart can show
constexpr size_t kMaxCurves = 1000;
constexpr size_t kMaxRanks = 4096;

bool is_count(std::string_view name) {
  return name == "epoch" || name == "step" || name == "slowest_rank" || name == "total";
}

}  // namespace

void RunCurves::add_line(std::string_view line) {
  if (line.empty()) return;
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  const auto is_integer = [&](const char* name) {
    return json.contains(name) && json.at(name).is_number_integer();
  };
  if (!json.is_object() || !json.contains("split") || !json.at("split").is_string() ||
      !is_integer("step")) {
    ++broken_lines_;
    return;
  }
  const auto split = json.at("split").get<std::string>();
  last_step_ = json.at("step");
  if (is_integer("epoch")) last_epoch_ = json.at("epoch");
  const auto is_number = [&](const char* name) {
    return json.contains(name) && json.at(name).is_number();
  };
  if (const Curve& clock = curve("train/t"); split == "train" && is_number("t")) {
    if (!clock.empty() && json.at("t") < clock.last()) ended_s_ += clock.last();
  }
  for (const auto& [name, value] : json.items()) {
    if (is_count(name) || (!value.is_number() && !value.is_null())) continue;
    const std::string key = fmt::format("{}/{}", split, name);
    if (curves_.size() >= kMaxCurves && !curves_.contains(key)) continue;
    curves_[key].add(
        static_cast<double>(last_step_),
        value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  if (split != "train") return;
  ++train_lines_;
  if (is_number("loader_waited") && json.at("loader_waited") >= kLoaderWaits &&
      json.contains("loader_busy_with")) {
    const nlohmann::json& busy = json.at("loader_busy_with");
    if (busy.is_string() && loader_busy_.size() < kSpans) ++loader_busy_[busy];
  }
  if (!is_integer("slowest_rank") || !is_number("skew")) return;
  const SlowestRankSpan span{
      .last = last_step_, .rank = json.at("slowest_rank"), .skew = json.at("skew")};
  if (span.skew >= kSlowSkew && times_slow_.size() < kMaxRanks) ++times_slow_[span.rank];
  add_slowest(span);
}

void RunCurves::add_slowest(const SlowestRankSpan& span) {
  const auto merge = [](const SlowestRankSpan& a, const SlowestRankSpan& b) {
    const SlowestRankSpan& slower = a.skew > b.skew ? a : b;
    return SlowestRankSpan{.last = b.last, .rank = slower.rank, .skew = slower.skew};
  };
  if (!slowest_.empty() && slowest_pending_ < slowest_stride_) {
    slowest_.back() = merge(slowest_.back(), span);
    ++slowest_pending_;
    return;
  }
  if (slowest_.size() == kSpans) {
    for (size_t i = 0; i < kSpans / 2; ++i) {
      slowest_[i] = merge(slowest_[2 * i], slowest_[2 * i + 1]);
    }
    slowest_.resize(kSpans / 2);
    slowest_stride_ *= 2;
  }
  slowest_.push_back(span);
  slowest_pending_ = 1;
}

const Curve& RunCurves::curve(const std::string& name) const {
  static const Curve empty;
  const auto found = curves_.find(name);
  return found == curves_.end() ? empty : found->second;
}

std::string RunCurves::loader_busy_with() const {
  const auto most_frequent =
      std::ranges::max_element(loader_busy_, {}, [](const auto& e) { return e.second; });
  return most_frequent == loader_busy_.end() ? "" : most_frequent->first;
}

UniqueFd open_metrics(const std::filesystem::path& metrics_file) {
  UniqueFd file(::open(metrics_file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about{};
  const bool is_file = file.valid() && ::fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode);
  return is_file ? std::move(file) : UniqueFd();
}

uint64_t add_lines(const UniqueFd& metrics,
                   uint64_t offset,
                   LineSplitter& lines,
                   RunCurves& curves) {
  std::string bytes(size_t{1} << 16, '\0');
  while (lines.rest().size() < LineSplitter::kMaxLine) {
    const size_t count =
        read_at(metrics, offset, std::as_writable_bytes(std::span(bytes))).value_or(0);
    if (count == 0) break;
    offset += count;
    lines.add(std::string_view(bytes.data(), count),
              [&](const std::string& line) { curves.add_line(line); });
  }
  return offset;
}

RunCurves read_curves(const std::filesystem::path& metrics_file) {
  RunCurves curves;
  LineSplitter lines;
  if (const UniqueFd file = open_metrics(metrics_file); file.valid()) {
    add_lines(file, 0, lines, curves);
    curves.add_line(lines.rest());
  }
  return curves;
}

}  // namespace lockstep::trainers
