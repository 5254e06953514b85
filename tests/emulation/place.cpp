#include "tests/emulation/place.h"

#include <cstdio>
#include <map>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

namespace lockstep::emulation {
namespace {

struct ProgramAddress {
  std::string file;
  ptrdiff_t offset = 0;
};

ProgramAddress find(const void* address) {
  Dl_info object{};
  if (dladdr(address, &object) == 0) return {"?", 0};
  return {object.dli_fname,
          static_cast<const char*>(address) - static_cast<const char*>(object.dli_fbase)};
}

// Caches its answers, since each takes a tenth of a second.
const std::vector<std::string>& addr2line(const char* flags, const ProgramAddress& at) {
  static auto& answers = *new std::map<std::string, std::vector<std::string>>;
  const std::string command =
      fmt::format("addr2line {} -e '{}' {:#x} 2>/dev/null", flags, at.file, at.offset);
  const auto [answer, is_new] = answers.try_emplace(command);
  if (!is_new) return answer->second;
  std::FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) return answer->second;
  char line[2048];
  while (std::fgets(line, sizeof(line), output) != nullptr) {
    answer->second.emplace_back(line);
    answer->second.back().pop_back();
  }
  pclose(output);
  return answer->second;
}

}  // namespace

std::string place_of(const void* return_address) {
  ProgramAddress at = find(return_address);
  --at.offset;  // an address within the call instruction
  std::string text;
  for (std::string_view line : addr2line("-Csi", at)) {
    line = line.substr(0, line.find(" ("));
    if (line.starts_with("device_language.h") || line.starts_with('?')) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", inlined into ", line);
  }
  return text.empty() ? fmt::format("{}+{:#x}", at.file, at.offset) : text;
}

std::string kernel_name(const Call& call) {
  const std::vector<std::string>& lines = addr2line("-Cf", find(call.kernel));
  return lines.empty() || lines[0].starts_with('?') ? call.name : lines[0];
}

}  // namespace lockstep::emulation
