#include "engine/observe/numerics_find.h"

#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comm/gather.h"
#include "core/words.h"

namespace lockstep {
namespace {

constexpr char kFieldEnd = '\0';  // no name has it

template <class T>
constexpr bool kIsList = std::is_same_v<std::remove_cvref_t<T>, std::vector<int64_t>>;

// The find as one text, for other ranks.
std::string packed(const NumericsFind& find) {
  std::string text;
  NumericsFind::visit_fields(find, [&](const char*, const auto& field) {
    if constexpr (kIsList<decltype(field)>) {
      text += fmt::format("{}", fmt::join(field, " "));
    } else {
      text += fmt::format("{}", field);
    }
    text += kFieldEnd;
  });
  return text;
}

NumericsFind unpacked(std::string_view text) {
  NumericsFind find;
  const std::vector<std::string_view> fields = split_words(text, kFieldEnd);
  size_t next = 0;
  NumericsFind::visit_fields(find, [&](const char*, auto& field) {
    const std::string_view word = fields.at(next++);
    if constexpr (kIsList<decltype(field)>) {
      for (const std::string_view number : split_words(word, ' ')) {
        if (const auto value = parse_int(number)) field.push_back(*value);
      }
    } else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, int64_t>) {
      field = parse_int(word).value_or(0);
    } else {
      field = word;
    }
  });
  return find;
}

void add(std::vector<int64_t>& to, const std::vector<int64_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

std::optional<NumericsFind> earliest(Communicator& ranks, const std::optional<NumericsFind>& mine) {
  std::optional<NumericsFind> first;
  const auto place = [](const NumericsFind& find) { return std::tuple(find.step, find.event); };
  for (const std::string& text : comm::gather_texts(ranks, mine ? packed(*mine) : "")) {
    if (text.empty()) continue;
    NumericsFind find = unpacked(text);
    if (!first || place(find) < place(*first)) {
      first = std::move(find);
    } else if (place(find) == place(*first)) {
      if (find.phase != "weights") first->count += find.count;  // replicas: the same elements
      add(first->shards, find.shards);
      add(first->images, find.images);
    }
  }
  return first;
}

std::vector<int64_t> NumericsReport::owners() const {
  std::vector<int64_t> owners;
  for (const int64_t shard : first ? first->shards : std::vector<int64_t>()) {
    const int64_t rank = ((shard + 1) * ranks - 1) / shards;  // owns [floor(r S/W), ...)
    if (owners.empty() || owners.back() != rank) owners.push_back(rank);
  }
  return owners;
}

}  // namespace lockstep
