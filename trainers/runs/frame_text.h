// Lines of text for a terminal of so many columns. Each character is taken to be one column wide.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::trainers {

// Characters of UTF-8 text.
int characters_of(std::string_view text);

// The first `columns` characters.
std::string cut_to(std::string_view text, int columns);

// Parts with " · " between them, on as many lines as they need.
std::vector<std::string> flowed(const std::vector<std::string>& parts, int columns);

// "━━━━━━────": this share of the columns.
std::string bar_text(double share, int columns);

// A line of colored pieces, none of which goes beyond its columns.
class FrameLine {
 public:
  FrameLine(int columns, bool colors) : left_(columns), colors_(colors) {}

  // `color`: a foreground of ECMA-48's SGR; 0: the terminal's own.
  FrameLine& add(std::string_view text, int color = 0);
  std::string text() const { return text_; }
  std::string padded() const;  // with blanks up to its columns

 private:
  std::string text_;
  int left_;
  bool colors_;
};

// Lines of `right` after those of `left`, which are all as wide as each other.
std::vector<std::string> side_by_side(std::vector<std::string> left,
                                      const std::vector<std::string>& right);

}  // namespace lockstep::trainers
