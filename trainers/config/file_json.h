// JSON from a file that anybody may have written.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
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

// Says what makes a text cost more than its size tells; "" for nothing. Copying a value and dump()
// call themselves for each level, and the stack may end; an ordered object is searched member by
// member. A callback for nlohmann's parser would take a time quadratic in the length of an array.
std::string costly_part(std::string_view json);

// Errors: Json's exceptions, also for a text with a costly part.
template <class Json>
Json parse_file(const std::string& text) {
  constexpr int kOther = 501;  // nlohmann's
  const std::string problem = costly_part(text);
  if (!problem.empty()) throw Json::other_error::create(kOther, problem, nullptr);
  return Json::parse(text);
}

}  // namespace lockstep::trainers
