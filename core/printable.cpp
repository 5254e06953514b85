#include "core/printable.h"

#include <fmt/format.h>

namespace lockstep {

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  for (const char c : text.substr(0, limit)) {
    if (c >= 0x20 && c < 0x7f && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text.size() > limit ? out + "..." : out;
}

}  // namespace lockstep
