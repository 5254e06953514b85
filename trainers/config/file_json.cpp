#include "trainers/config/file_json.h"

namespace lockstep::trainers {

std::string costly_part(std::string_view json) {
  constexpr size_t kMaxDepth = 64;
  constexpr int kMaxMembers = 4096;
  std::vector<int> members;  // of the values that are open
  bool is_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (is_text && c == '\\') {
      ++i;
    } else if (c == '"') {
      is_text = !is_text;
    } else if (is_text) {
      continue;
    } else if (c == '[' || c == '{') {
      members.push_back(0);
    } else if ((c == ']' || c == '}') && !members.empty()) {
      members.pop_back();
    } else if (c == ':' && !members.empty()) {
      ++members.back();
    }
    if (members.size() > kMaxDepth) {
      return fmt::format("values are nested more than {} deep", kMaxDepth);
    }
    if (!members.empty() && members.back() > kMaxMembers) {
      return fmt::format("an object has more than {} members", kMaxMembers);
    }
  }
  return {};
}

}  // namespace lockstep::trainers
