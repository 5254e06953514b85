#include "trainers/options/config_file.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0  // an error is a result, which carries its line
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "core/error.h"
#include "core/version.h"
#include "core/words.h"

namespace lockstep::trainers {
namespace {

// The line of the first character beyond ASCII that stands outside of quotes and comments; 0 where
// there is none. TOML has no such character there, and toml++ 3.3 would take it to be white space
// or reach code that it declares unreachable.
int line_of_stray_character(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  int line = 1;
  char inside = 0;  // the quote or # that began what is read
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line, inside = 0;
    } else if (inside == 0) {
      if (static_cast<unsigned char>(c) >= 0x80) return line;
      if (c == '"' || c == '\'' || c == '#') inside = c;
    } else if (inside == '"' && c == '\\') {
      if (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (inside == c && c != '#') {
      inside = 0;
    }
  }
  return 0;
}

class ConfigReader {
 public:
  explicit ConfigReader(std::string_view file) : file_(file) {}

  std::vector<ConfigEntry> read(std::string_view text) const {
    if (const int line = line_of_stray_character(text)) {
      throw UsageError(fmt::format("{}:{}: this is not TOML", file_, line),
                       "a character that is not ASCII stands outside of quotes",
                       "quotes around a text: name = \"text\"");
    }
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
      const toml::parse_error& error = parsed.error();
      throw UsageError(where(error.source()) + "this is not TOML",
                       printable(error.description(), 300),
                       "a line for each flag: lr = 0.1");
    }
    std::vector<ConfigEntry> entries;
    for (const auto& [key, value] : parsed.table()) {
      entries.push_back({.key = std::string(key.str()),
                         .value = text_of(value),
                         .line = static_cast<int>(value.source().begin.line)});
    }
    std::ranges::sort(entries, {}, &ConfigEntry::line);
    return entries;
  }

 private:
  std::string where(const toml::source_region& place) const {
    return fmt::format("{}:{}: ", file_, place.begin.line);
  }

  [[noreturn]] void refuse(const toml::node& node,
                           std::string_view what,
                           std::string_view instead) const {
    throw UsageError(where(node.source()) + std::string(what),
                     "a file for --config holds flags as lines of TOML",
                     std::string(instead));
  }

  std::string text_of(const toml::node& node) const {
    if (const auto* const array = node.as_array()) return text_of(*array);
    if (node.is_table()) refuse(node, "a table begins", "flags are plain lines: name = value");
    if (const auto* const text = node.as_string()) return text->get();
    if (const auto* const flag = node.as_boolean()) return flag->get() ? "true" : "false";
    if (const auto* const count = node.as_integer()) return std::to_string(count->get());
    const auto* const number = node.as_floating_point();
    if (number == nullptr) refuse(node, "this is a date or a time", "text in quotes");
    const std::string text = fmt::format("{}", number->get());
    const bool looks_whole = text.find_first_not_of("-0123456789") == std::string::npos;
    return looks_whole ? text + ".0" : text;  // 3.0 is no whole number, as its writer meant it
  }

  std::string text_of(const toml::array& array) const {
    std::string values;
    for (const toml::node& value : array) {
      if (value.is_array()) refuse(value, "an array in an array", "one array: [30, 60, 80]");
      values += (values.empty() ? "" : ",") + text_of(value);
    }
    return values;
  }

  std::string_view file_;
};

// 'text', or "text" with escapes where it needs them.
std::string toml_string(std::string_view text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::ranges::none_of(text, is_control) && text.find('\'') == std::string_view::npos) {
    return fmt::format("'{}'", text);
  }
  std::string result = "\"";
  for (const char c : text) {
    if (is_control(c)) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

std::string toml_value(const Flag& flag, const std::string& text) {
  switch (flag.kind) {
    case FlagKind::kBool:
      return parse_bool(text).value_or(false) ? "true" : "false";
    case FlagKind::kInt:
      return std::to_string(parse_int(text).value_or(0));
    case FlagKind::kFloat:
      return fmt::format("{}", parse_float(text).value_or(0));
    case FlagKind::kString:
    case FlagKind::kChoice:
      break;
  }
  return toml_string(text);
}

}  // namespace

std::vector<ConfigEntry> parse_config(std::string_view text, std::string_view file) {
  return ConfigReader(file).read(text);
}

std::string config_text(const Options& options) {
  std::string given = fmt::format("# {0} of Lockstep {1}: {0} --config FILE runs this job\n",
                                  name_of(options.program),
                                  version());
  std::string others = "\n# what the preset, the data set and defaults settle\n";
  for (const Flag& flag : flag_table()) {
    const Setting* const setting = options.find(flag.name);
    if (setting == nullptr || only_prints(flag) || flag.name == "config") continue;
    const std::string line = fmt::format("{} = {}", flag.name, toml_value(flag, setting->value));
    if (options.given(flag.name)) {
      given += line + "\n";
    } else {
      others += fmt::format("# {}  # {}\n", line, name_of(setting->origin));
    }
  }
  return given + others;
}

}  // namespace lockstep::trainers
