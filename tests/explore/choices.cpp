#include "tests/explore/choices.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace lockstep::explore {

void Choices::begin() {
  made_.clear();
  spent_ = 0;
}

uint32_t Choices::choose(uint32_t options, bool costs, uint64_t rare) {
  if (costs && spent_ >= preemptions_) options = 1;
  if (options <= 1) return 0;
  const size_t place = made_.size();
  uint32_t taken = 0;
  if (place < given_.size()) {
    taken = std::min(given_[place], options - 1);
  } else if (is_random_ && random_() % rare == 0) {
    taken = static_cast<uint32_t>(random_() % options);
  }
  made_.push_back({taken, options});
  if (costs && taken > 0) ++spent_;
  return taken;
}

bool Choices::next() {
  if (is_random_) return true;
  while (!made_.empty() && made_.back().taken + 1 == made_.back().options) made_.pop_back();
  if (made_.empty()) return false;
  ++made_.back().taken;
  given_.clear();
  for (const Choice& choice : made_) given_.push_back(choice.taken);
  return true;
}

std::string Choices::text() const {
  std::string text;
  for (const Choice& choice : made_) text += fmt::format("{}.", choice.taken);
  return text;
}

std::vector<uint32_t> choices_of(const std::string& text) {
  std::vector<uint32_t> choices;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    uint32_t taken = 0;
    at = std::from_chars(at, end, taken).ptr + 1;
    choices.push_back(taken);
  }
  return choices;
}

}  // namespace lockstep::explore
