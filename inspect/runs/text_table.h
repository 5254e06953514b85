// Tables for the terminal.
#pragma once

#include <string>
#include <vector>

namespace lockstep::trainers {

// Rows of cells as aligned lines; the columns from `numbers_from` on stand to the right.
std::string text_table(const std::vector<std::vector<std::string>>& rows, size_t numbers_from);

}  // namespace lockstep::trainers
