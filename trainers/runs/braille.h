// Curves for the terminal, drawn in dots of braille characters: two across and four down in each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainers/runs/curve.h"

namespace lockstep::trainers {

struct BrailleCurve {
  std::span<const CurvePoint> points{};
  int color = 0;  // a foreground of ECMA-48's SGR, 31 to 36; 0: the terminal's own
};

struct BrailleArea {
  int columns = 40;  // of characters, the labels of the y axis included
  int rows = 6;
  double last_x = 0;         // x begins at 0
  bool logarithmic = false;  // y; values must be above 0 then
};

// Lines of exactly `columns` characters; of two curves in one character, the later one gives the
// color. Empty where there is no point or no room. `colors`: with escape sequences.
std::vector<std::string> braille_plot(std::span<const BrailleCurve> curves,
                                      const BrailleArea& area,
                                      bool colors);

}  // namespace lockstep::trainers
