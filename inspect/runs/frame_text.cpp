#include "inspect/runs/frame_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/core.h>

#include "core/words.h"

namespace lockstep::trainers {
std::vector<std::string> flowed(const std::vector<std::string>& parts, int columns) {
  constexpr std::string_view kBetween = " · ";
  std::vector<std::string> lines;
  for (const std::string& whole : parts) {
    const std::string part = cut_to(whole, columns);
    const int wanted = characters_of(part) + characters_of(kBetween);
    if (!lines.empty() && characters_of(lines.back()) + wanted <= columns) {
      lines.back() += std::string(kBetween) + part;
    } else {
      lines.push_back(part);
    }
  }
  return lines;
}

std::string bar_text(double share, int columns) {
  const auto done =
      static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(columns)));
  std::string text;
  for (int i = 0; i < columns; ++i) text += i < done ? "━" : "─";
  return text;
}

FrameLine& FrameLine::add(std::string_view text, int color) {
  const std::string piece = cut_to(text, left_);
  left_ -= characters_of(piece);
  text_ += colors_ && color != 0 ? fmt::format("\x1b[{}m{}\x1b[0m", color, piece) : piece;
  return *this;
}

}  // namespace lockstep::trainers
