#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "trainers/page/html.h"
#include "trainers/page/report_parts.h"
#include "trainers/report/number_text.h"

namespace lockstep::trainers {
namespace {

constexpr int64_t kMaxClasses = 40;  // of a matrix that can be read

// As HTML: the class's name, or its number.
std::string class_text(const ViewedRun& run, int64_t label) {
  const std::vector<std::string>& names = run.record.evaluation.class_names;
  const auto i = static_cast<size_t>(label);
  return label >= 0 && i < names.size() ? escaped(names[i]) : std::to_string(label);
}

// A cell's share of its row decides how dark it is.
std::string matrix_cell(int64_t count, int64_t of_row, bool right) {
  if (count == 0) return "<td style=\"background:var(--soft)\"></td>";
  const double share = static_cast<double>(count) / static_cast<double>(of_row);
  return fmt::format(
      "<td style=\"background:color-mix(in srgb,var({}) {:.0f}%,var(--card))\">{}</td>",
      right ? "--c2" : "--c1",
      8 + 60 * (right ? share : std::sqrt(share)),
      count_text(count));
}

std::string matrix_row(const ViewedRun& run, std::span<const int64_t> counts, int64_t label) {
  int64_t all = 0;
  for (const int64_t count : counts) all += count;
  std::string text = fmt::format("<tr><th>{}</th>", class_text(run, label));
  for (int64_t said = 0; said < std::ssize(counts); ++said) {
    text += matrix_cell(counts[static_cast<size_t>(said)], all, said == label);
  }
  const auto right = static_cast<double>(counts[static_cast<size_t>(label)]);
  const std::string percent =
      all == 0 ? "–" : fmt::format("{:.1f} %", 100 * right / static_cast<double>(all));
  return text + fmt::format("<th>{}</th></tr>\n", percent);
}

std::string confusion_matrix(const ViewedRun& run, const Mistakes& mistakes) {
  const auto classes = static_cast<size_t>(mistakes.classes);
  if (mistakes.confusion.empty() || mistakes.classes > kMaxClasses) return "";
  std::string text =
      "<div class=\"card scroll\" style=\"padding:16px\"><table class=\"matrix\">\n<tr><th></th>";
  for (size_t c = 0; c < classes; ++c) {
    text += fmt::format("<th>{}</th>", class_text(run, static_cast<int64_t>(c)));
  }
  text += "<th>right</th></tr>\n";
  for (size_t label = 0; label < classes; ++label) {
    const auto counts = std::span(mistakes.confusion).subspan(label * classes, classes);
    text += matrix_row(run, counts, static_cast<int64_t>(label));
  }
  return text + "</table></div>\n";
}

std::string worst_images(const ViewedRun& run, const Mistakes& mistakes) {
  std::string text;
  for (size_t i = 0; i < mistakes.worst.size(); ++i) {
    const Mistake& mistake = mistakes.worst[i];
    const std::string words = fmt::format(
        "{} taken for {}", class_text(run, mistake.label), class_text(run, mistake.predicted));
    const std::string& png = mistakes.pictures[i];  // base64, as mistakes_of() has checked
    const std::string picture =
        png.empty()
            ? ""
            : fmt::format("<img alt=\"test image {}: {}\" src=\"data:image/png;base64,{}\">",
                          mistake.index,
                          words,
                          png);
    text += fmt::format(
        "<figure class=\"card\">{}<p><b>{}</b></p><p>image {}, loss {:.2f}</p></figure>\n",
        picture,
        words,
        count_text(mistake.index),
        mistake.loss);
  }
  return text.empty() ? "" : "<div class=\"wrong\">\n" + text + "</div>\n";
}

}  // namespace

std::string mistake_parts(const ViewedRun& run) {
  if (!run.mistakes) return "";
  return html_section("Confusion matrix",
                      "Rows are the true classes, columns what the network said, in test images.",
                      confusion_matrix(run, *run.mistakes)) +
         html_section("Most wrong",
                      "The test images with the largest loss among those that were not recognized.",
                      worst_images(run, *run.mistakes));
}

}  // namespace lockstep::trainers
