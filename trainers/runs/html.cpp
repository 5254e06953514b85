#include "trainers/runs/html.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "trainers/runs/page_style.h"

namespace lockstep::trainers {
namespace {

// With U+FFFD where it is not UTF-8.
std::string valid_utf8(std::string_view text) {
  const nlohmann::json json{std::string(text)};
  const std::string mended = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(mended).at(0);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : valid_utf8(text)) {
    const bool is_control = (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f';
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += is_control ? "\uFFFD" : std::string(1, c);
    }
  }
  return html;
}

std::string html_page(std::string_view title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; img-src data:\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</"
      "html>\n",
      escaped(title),
      kPageStyle,
      body);
}

std::string html_section(std::string_view title, std::string_view note, const std::string& body) {
  if (body.empty()) return "";
  const std::string aside =
      note.empty() ? "" : fmt::format("<p class=\"note\">{}</p>\n", escaped(note));
  return fmt::format("<section>\n<h2>{}</h2>\n{}{}</section>\n", escaped(title), aside, body);
}

std::string html(const HtmlTable& table) {
  const auto row = [&](const std::vector<std::string>& cells, const char* tag) {
    std::string text = "<tr>";
    for (size_t i = 0; i < cells.size(); ++i) {
      const char* const side = i >= table.numbers_from ? " class=\"num\"" : "";
      text += fmt::format("<{0}{1}>{2}</{0}>", tag, side, cells[i]);
    }
    return text + "</tr>\n";
  };
  std::string text =
      "<div class=\"card scroll\"><table>\n<thead>" + row(table.head, "th") + "</thead>\n<tbody>\n";
  for (const std::vector<std::string>& cells : table.rows) text += row(cells, "td");
  return text + "</tbody>\n</table></div>\n";
}

std::string html_facts(std::span<const std::pair<std::string, std::string>> facts) {
  std::string text = "<dl class=\"card facts\">\n";
  for (const auto& [name, value] : facts) {
    text += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value);
  }
  return text + "</dl>\n";
}

}  // namespace lockstep::trainers
