#include "comm/handshake.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "comm/gather.h"
#include "core/error.h"
#include "core/first_few.h"
#include "core/words.h"

namespace lockstep::comm {
namespace {

constexpr char kArgumentTag = 'a';
constexpr char kEnvironmentTag = 'e';

// A field travels as its kind's tag, then "name=value", then NUL.
std::string encode(std::span<const HandshakeField> fields) {
  std::string text;
  for (const HandshakeField& field : fields) {
    text += field.kind == HandshakeField::Kind::kArgument ? kArgumentTag : kEnvironmentTag;
    text += field.name + '=' + field.value + '\0';
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> fields;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\0'), text.size() - 1);
    fields.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return fields;
}

// Returns `field` without its kind, cut so that the first difference from `other` stays visible.
std::string excerpt(std::string_view field, std::string_view other) {
  constexpr size_t kLimit = 120;
  constexpr size_t kBefore = 40;
  if (field.empty()) return "nothing in its place";
  field.remove_prefix(1);
  if (!other.empty()) other.remove_prefix(1);
  const auto differs = static_cast<size_t>(std::ranges::mismatch(field, other).in1 - field.begin());
  if (field.size() <= kLimit || differs < kLimit - kBefore) return printable(field, kLimit);
  const size_t name_end = field.find('=') + 1;
  const size_t begin = std::max(name_end, differs - kBefore);
  return fmt::format(
      "{}...{}", printable(field.substr(0, name_end)), printable(field.substr(begin), kLimit));
}

[[noreturn]] void refuse(std::string_view expected,
                         std::string_view different,
                         std::span<const size_t> ranks) {
  const std::string why =
      fmt::format("{} {}, rank 0 has {}",
                  ranks.size() == 1 ? fmt::format("rank {} has", ranks[0])
                                    : fmt::format("ranks {} have", first_few(ranks)),
                  excerpt(different, expected),
                  excerpt(expected, different));
  const std::string_view field = expected.empty() ? different : expected;
  if (field[0] == kArgumentTag) {
    throw UsageError("ranks have different arguments", why, "give every rank the same arguments");
  }
  throw EnvironmentError(
      fmt::format("ranks differ in {}", printable(field.substr(1, field.find('=') - 1))),
      why,
      "start one program with the same libraries and data on machines of one kind");
}

}  // namespace

void handshake(Communicator& peers, std::span<const HandshakeField> fields) {
  const std::vector<std::string> texts = gather_texts(peers, encode(fields));
  std::vector<std::vector<std::string_view>> lists;
  size_t longest = 0;
  for (const std::string& text : texts) {
    lists.push_back(split(text));
    longest = std::max(longest, lists.back().size());
  }
  for (size_t i = 0; i < longest; ++i) {
    const auto field_of = [&](size_t rank) {
      return i < lists[rank].size() ? lists[rank][i] : std::string_view();
    };
    const std::string_view expected = field_of(0);
    std::string_view different;
    std::vector<size_t> ranks;  // that have `different`
    for (size_t rank = 1; rank < lists.size(); ++rank) {
      const std::string_view field = field_of(rank);
      if (field == expected) continue;
      if (ranks.empty()) different = field;
      if (field == different) ranks.push_back(rank);
    }
    if (!ranks.empty()) refuse(expected, different, ranks);
  }
}

}  // namespace lockstep::comm
