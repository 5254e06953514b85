#include "trainers/page/html.h"

#include <fmt/core.h>

#include "core/words.h"
#include "trainers/page/page_style.h"

namespace lockstep::trainers {

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : without_controls(text)) {
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
        html += c;
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
