// Formats lines for a terminal with a given number of columns. Each character is assumed to be one
// column wide.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::trainers {

// Joins parts with " · ", on as many lines as they need.
std::vector<std::string> flowed(const std::vector<std::string>& parts, int columns);

// Draws a bar, "━━━━━━────", filled to this share of the columns.
std::string bar_text(double share, int columns);

// Builds a line of colored pieces and cuts it at its columns.
class FrameLine {
 public:
  FrameLine(int columns, bool colors) : left_(columns), colors_(colors) {}

  // `color`: a foreground of ECMA-48's SGR; 0: the terminal's own.
  FrameLine& add(std::string_view text, int color = 0);
  std::string text() const { return text_; }

 private:
  std::string text_;
  int left_;
  bool colors_;
};

}  // namespace lockstep::trainers
