// Parts of a self-contained HTML page: no scripts, no fonts, nothing from outside.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::trainers {

// Escapes text for a page, in attributes too: <, >, & and quotes are escaped; what
// without_controls() replaces becomes \xNN.
std::string escaped(std::string_view text);

// A whole page. `title` is escaped here, `body` is HTML.
std::string html_page(std::string_view title, const std::string& body);

// A titled part of the page. `title` is text and `body` HTML. Returns nothing where the body is
// empty.
std::string html_section(std::string_view title, std::string_view note, const std::string& body);

// Cells are HTML. Columns from `numbers_from` on are numbers and right-aligned.
struct HtmlTable {
  std::vector<std::string> head{};
  std::vector<std::vector<std::string>> rows{};
  size_t numbers_from = 1;
};
std::string html(const HtmlTable& table);

// Two columns: names and values. Both are HTML.
std::string html_facts(std::span<const std::pair<std::string, std::string>> facts);

}  // namespace lockstep::trainers
