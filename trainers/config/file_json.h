// JSON from a file that anybody may have written.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace lockstep::trainers {

// Converts as nlohmann does, except for whole numbers: nlohmann casts any number to the type asked
// for, which is undefined for a double out of range, and truncates numbers that are too long.
template <class T, class Enable = void>
struct WholeNumbers : nlohmann::adl_serializer<T, Enable> {};

template <class T>
  requires(std::integral<T> && !std::same_as<T, bool>)
struct WholeNumbers<T, void> {
  // Errors: Json's type_error for another number, or another type.
  template <class Json>
  static void from_json(const Json& json, T& number) {
    const bool taken =
        json.is_number_unsigned()
            ? take(*json.template get_ptr<const uint64_t*>(), number)
            : json.is_number_integer() && take(*json.template get_ptr<const int64_t*>(), number);
    if (taken) return;
    constexpr int kWrongType = 302;  // nlohmann's
    throw Json::type_error::create(kWrongType,
                                   fmt::format("{} is not a whole number in range",
                                               json.is_number() ? json.dump() : json.type_name()),
                                   &json);
  }
  template <class Json>
  static void to_json(Json& json, T number) {
    nlohmann::adl_serializer<T>::to_json(json, number);
  }

 private:
  template <class Stored>
  static bool take(Stored stored, T& number) {
    if (!std::in_range<T>(stored)) return false;
    number = static_cast<T>(stored);
    return true;
  }
};

template <template <class...> class Object>
using FileJsonOf = nlohmann::basic_json<Object,
                                        std::vector,
                                        std::string,
                                        bool,
                                        int64_t,
                                        uint64_t,
                                        double,
                                        std::allocator,
                                        WholeNumbers>;
// An object's members in the order of their names.
using FileJson = FileJsonOf<std::map>;
// Members in the file's order; a lookup scans all members before the one it finds.
using OrderedFileJson = FileJsonOf<nlohmann::ordered_map>;

// A callback for Json::parse. Throws Json's other_error where values are nested too deeply:
// copying a value and dump() call themselves for each level, and the stack may end.
template <class Json>
bool limit_depth(int depth, typename Json::parse_event_t /*event*/, Json& value) {
  constexpr int kMaxDepth = 64;
  if (depth <= kMaxDepth) return true;
  constexpr int kOther = 501;  // nlohmann's
  throw Json::other_error::create(
      kOther, fmt::format("values are nested more than {} deep", kMaxDepth), &value);
}

// Errors: Json's exceptions, also for values that are nested too deeply.
template <class Json>
Json parse_file(const std::string& text) {
  return Json::parse(text, limit_depth<Json>);
}

}  // namespace lockstep::trainers
