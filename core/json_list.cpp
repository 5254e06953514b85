#include "core/json_list.h"

#include <nlohmann/json.hpp>

namespace lockstep {

std::vector<std::string> strings_under(std::string_view json, std::string_view key) {
  const auto object = nlohmann::json::parse(json, nullptr, false);
  if (!object.is_object()) return {};
  const auto list = object.find(key);
  if (list == object.end() || !list->is_array()) return {};
  std::vector<std::string> strings;
  for (const auto& each : *list) {
    if (!each.is_string()) return {};
    strings.push_back(each.get<std::string>());
  }
  return strings;
}

}  // namespace lockstep
