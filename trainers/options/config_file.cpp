#include "trainers/options/config_file.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "core/error.h"
#include "core/version.h"
#include "core/words.h"

namespace lockstep::trainers {
namespace {

bool is_bare(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

// TOML's numbers, but for those of other bases: no 0 in front, digits on both sides of a point, _
// between digits alone.
bool is_toml_number(std::string_view text) {
  const auto digits = [&] {
    size_t count = 0;
    bool after_digit = false;
    while (!text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) != 0 ||
                             (text[0] == '_' && after_digit))) {
      after_digit = text[0] != '_';
      text.remove_prefix(1);
      ++count;
    }
    return after_digit ? count : 0;
  };
  const auto skip = [&](std::string_view any) {
    const bool found = !text.empty() && any.find(text[0]) != std::string_view::npos;
    if (found) text.remove_prefix(1);
    return found;
  };
  skip("+-");
  const bool zero = text.starts_with('0');
  const size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (skip(".") && digits() == 0) return false;
  if (skip("eE")) {
    skip("+-");
    if (digits() == 0) return false;
  }
  return text.empty();
}

std::string utf8(uint32_t code) {
  std::string bytes;
  const auto add = [&](uint32_t byte) { bytes += static_cast<char>(byte); };
  const auto tail = [&](int shift) { add(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    add(0xF0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
  return bytes;
}

class ConfigReader {
 public:
  ConfigReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  std::vector<ConfigEntry> read() {
    std::vector<ConfigEntry> entries;
    for (skip_lines(); !text_.empty(); skip_lines()) {
      if (peek() == '[') refuse("a table begins", "flags are plain lines: name = value");
      ConfigEntry entry{.key = key(), .value = {}, .line = line_};
      skip_blanks();
      if (!take('=')) refuse("there is no = after the name", "lr = 0.1");
      skip_blanks();
      entry.value = value();
      skip_blanks();
      skip_comment();
      if (!text_.empty() && !end_line()) refuse("more follows the value", "a line for each flag");
      const bool again =
          std::ranges::any_of(entries, [&](const ConfigEntry& e) { return e.key == entry.key; });
      if (again) {
        refuse(fmt::format("{} stands twice", printable(entry.key)), "one line for it", entry.line);
      }
      entries.push_back(std::move(entry));
    }
    return entries;
  }

 private:
  [[noreturn]] void refuse(const std::string& what,
                           const std::string& instead,
                           int line = 0) const {
    throw UsageError(fmt::format("{}:{}: {}", file_, line == 0 ? line_ : line, what),
                     "a file for --config holds flags as lines of TOML",
                     instead);
  }

  char peek() const { return text_.empty() ? '\0' : text_.front(); }
  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  char next() {
    const char c = peek();
    if (text_.empty() || c == '\n') refuse("a string does not end", "a quote at its end");
    text_.remove_prefix(1);
    return c;
  }
  bool end_line() {
    if (text_.starts_with("\r\n")) text_.remove_prefix(1);
    if (!take('\n')) return false;
    ++line_;
    return true;
  }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') text_.remove_prefix(1);
  }
  void skip_comment() {
    if (peek() != '#') return;
    text_.remove_prefix(std::min(text_.find('\n'), text_.size()));
  }
  void skip_lines() {
    do {
      skip_blanks();
      skip_comment();
    } while (end_line());
  }

  std::string key() {
    if (peek() == '"' || peek() == '\'') return string();
    std::string name;
    while (is_bare(peek())) name += next();
    if (name.empty()) refuse("a line begins without a name", "lr = 0.1");
    return name;
  }

  std::string string() {
    const char quote = next();
    if (text_.starts_with(std::string(2, quote))) {
      refuse("a string of several lines begins", "one on one line");
    }
    std::string value;
    for (char c = next(); c != quote; c = next()) {
      value += c == '\\' && quote == '"' ? escaped() : std::string(1, c);
    }
    return value;
  }

  std::string escaped() {
    const char c = next();
    constexpr std::string_view kNames = "btnfr\"\\", kMeanings = "\b\t\n\f\r\"\\";
    const size_t found = kNames.find(c);
    if (found != std::string_view::npos) return std::string(1, kMeanings[found]);
    if (c != 'u' && c != 'U') {
      refuse("a string has an unknown escape", R"('...' takes a \ as it is)");
    }
    uint32_t code = 0;
    for (int i = 0; i < (c == 'u' ? 4 : 8); ++i) {
      const char digit = next();
      if (std::isxdigit(static_cast<unsigned char>(digit)) == 0) {
        refuse("an escape lacks hexadecimal digits", R"(\u00e9)");
      }
      const int letter = std::tolower(static_cast<unsigned char>(digit));
      code = code * 16 + static_cast<uint32_t>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      refuse("an escape is no character", R"(\u00e9)");
    }
    return utf8(code);
  }

  std::string value() {
    if (peek() == '"' || peek() == '\'') return string();
    if (take('[')) return array();
    std::string word;
    while (is_bare(peek()) || peek() == '.' || peek() == '+' || peek() == ':') word += next();
    if (word == "true" || word == "false") return word;
    if (!is_toml_number(word)) {
      refuse(word.empty() ? "there is no value" : fmt::format("{} is no value", printable(word)),
             "a number, true, false, or text in quotes");
    }
    std::erase(word, '_');
    return word;
  }

  std::string array() {
    std::string values;
    for (skip_lines(); !take(']'); skip_lines()) {
      if (peek() == '[') refuse("an array in an array", "one array");
      values += (values.empty() ? "" : ",") + value();
      skip_lines();
      if (!take(',') && peek() != ']') refuse("an array does not end", "[30, 60, 80]");
    }
    return values;
  }

  std::string_view text_;  // what is left
  std::string_view file_;
  int line_ = 1;
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
  if (flag.kind == FlagKind::kBool) return parse_bool(text).value_or(false) ? "true" : "false";
  const bool is_number = flag.kind == FlagKind::kInt || flag.kind == FlagKind::kFloat;
  if (!is_number) return toml_string(text);
  return is_toml_number(text) ? text : fmt::format("{}", parse_float(text).value_or(0));
}

}  // namespace

std::vector<ConfigEntry> parse_config(std::string_view text, std::string_view file) {
  return ConfigReader(text, file).read();
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
