#include "tests/fuzz/target.h"

#include <algorithm>
#include <stdexcept>

#include "core/error.h"

namespace lockstep::fuzz {

// Control characters of a file would reach the terminal that the message is printed on.
void check_message(const std::string& text) {
  const bool is_plain = std::ranges::all_of(text, [](char c) {
    return c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  });
  if (!is_plain) throw std::logic_error("a message holds control characters: " + text);
}

std::span<const Target> all_targets() {
  static const std::vector<Target> targets = [] {
    std::vector<Target> all;
    for (const auto part : {file_targets(), image_targets(), text_targets(), wire_targets()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return targets;
}

const Target* find_target(std::string_view name) {
  const auto found = std::ranges::find(all_targets(), name, &Target::name);
  return found == all_targets().end() ? nullptr : &*found;
}

void run(const Target& target, std::string_view input) {
  try {
    target.read(input);
  } catch (const Error& error) {
    // Not only as format_error() shows them, which takes control characters out: a warning or a
    // report may hold one of the parts alone.
    for (const std::string& part : {std::string(error.what()), error.why(), error.hint()}) {
      check_message(part);
    }
  }
}

}  // namespace lockstep::fuzz
