// Command lines of the benchmarks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/ranges.h>

#include "core/error.h"
#include "engine/settings/exchange_config.h"

namespace CLI {
class App;
}

namespace lockstep::bench {

UsageError bad_value(std::string_view flag, std::string_view text, std::string_view takes);

// Errors: UsageError, here and below.
int64_t whole_number(std::string_view flag, const std::string& text, int64_t min, int64_t max);

template <class T>
using Choices = std::type_identity_t<std::span<const Named<T>>>;

// "tree, ring, star"
template <class T>
std::string names_of(std::span<const Named<T>> choices) {
  std::vector<std::string_view> names;
  for (const auto& [value, name] : choices) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

template <class T>
T choice(std::string_view flag, std::string_view text, Choices<T> choices) {
  for (const auto& [value, name] : choices) {
    if (name == text) return value;
  }
  throw bad_value(flag, text, names_of<T>(choices));
}

// Returns the first long name in "-n,--iters", by which errors call the flag.
std::string long_name(const std::string& names);

// The flags of a program, each with a function that reads its value. When a flag is repeated, the
// last value counts, as with getopt.
class Flags {
 public:
  using Read = std::function<void(const std::string& text)>;

  // `flags_taken` says whose flags these are, for the error about an unknown one.
  Flags(std::string program, const std::string& purpose, std::string flags_taken);
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;
  ~Flags();

  // `names`: "-n,--iters"; `initial`: as --help shows it.
  void add(const std::string& names,
           const std::string& metavar,
           const std::string& initial,
           const std::string& help,
           const Read& read);
  // A whole number from `min` to `max`, for an int64_t or an optional one. --help shows the value
  // that `place` has now, here and below.
  template <class Place>
  void add_number(
      const std::string& names, const std::string& help, int64_t min, int64_t max, Place& place) {
    const std::optional<int64_t> initial = place;
    add(names,
        "N",
        initial ? std::to_string(*initial) : "",
        help,
        [flag = long_name(names), min, max, &place](const std::string& text) {
          place = whole_number(flag, text, min, max);
        });
  }
  // One of `choices`, which must outlive this.
  template <class T>
  void add_choice(const std::string& names,
                  const std::string& metavar,
                  const std::string& help,
                  Choices<T> choices,
                  T& place) {
    const auto initial = std::ranges::find(choices, place, &Named<T>::first);
    add(names,
        metavar,
        std::string(initial->second),
        help,
        [flag = long_name(names), choices, &place](const std::string& text) {
          place = choice<T>(flag, text, choices);
        });
  }
  void add_hidden(const std::string& names, const Read& read);
  void add_switch(const std::string& names, const std::string& help, bool& value);

  // Reads all values. Returns text to print instead of measuring, usually none. `arguments`:
  // without the program's name. Errors: UsageError.
  std::string parse(const std::vector<std::string>& arguments);

 private:
  UsageError unknown(const std::string& argument) const;

  const std::string program_;
  const std::string flags_taken_;
  const std::unique_ptr<CLI::App> app_;
};

// --transport and --stall-abort.
void add_connection(Flags& flags, comm::ConnectOptions& options);
// For set_remedy_text(): the advice in terms of those two flags.
std::string_view connection_advice(Remedy remedy);

}  // namespace lockstep::bench
