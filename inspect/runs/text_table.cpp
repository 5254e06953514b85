#include "inspect/runs/text_table.h"

#include <algorithm>

#include "core/words.h"

namespace lockstep::trainers {

std::string text_table(const std::vector<std::vector<std::string>>& rows, size_t numbers_from) {
  const auto columns_of = [](const std::string& cell) {
    return static_cast<size_t>(characters_of(cell));
  };
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - columns_of(row[i]), ' ');
      if (i > 0) line += "  ";
      line += i >= numbers_from ? space + row[i] : row[i] + space;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace lockstep::trainers
