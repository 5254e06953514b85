#include "trainers/options/config_file.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/version.h"
#include "core/words.h"

namespace lockstep::trainers {
namespace {

constexpr std::string_view kBlanks = " \t\r";  // \r only before a newline
constexpr std::string_view kLines = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_utf8(std::string_view text) {
  try {
    return !nlohmann::json(text).dump().empty();
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

bool is_beyond_ascii(char c) {
  return static_cast<unsigned char>(c) >= 0x80;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

bool has_form(std::string_view word, const std::regex& form) {
  constexpr size_t kLongest = 100;  // std::regex recurses with each character
  return word.size() <= kLongest && std::regex_match(word.begin(), word.end(), form);
}

// TOML's number in the form that parse_int() and parse_float() read; nothing for another word.
std::optional<std::string> number_text(std::string_view word) {
  static const std::regex number_form(
      R"([+-]?(inf|nan|(0|[1-9](_?\d)*)(\.\d(_?\d)*)?([eE][+-]?\d(_?\d)*)?))"
      R"(|0x[\da-fA-F](_?[\da-fA-F])*|0o[0-7](_?[0-7])*|0b[01](_?[01])*)");
  if (!has_form(word, number_form)) return std::nullopt;
  std::string text(word.substr(word.starts_with('+') ? 1 : 0));
  std::erase(text, '_');
  if (text.ends_with("inf") || text.ends_with("nan")) return text;
  const int base = text.starts_with("0x")   ? 16
                   : text.starts_with("0o") ? 8
                   : text.starts_with("0b") ? 2
                                            : 10;
  if (base != 10 || text.find_first_of(".eE") == text.npos) {
    const char* const digits = text.data() + (base == 10 ? 0 : 2);
    int64_t whole = 0;
    const auto error = std::from_chars(digits, text.data() + text.size(), whole, base).ec;
    return error == std::errc() ? std::optional(std::to_string(whole)) : std::nullopt;
  }
  const auto real = parse_float(text);
  if (!real) return std::nullopt;
  const std::string shown = fmt::format("{}", *real);
  const bool looks_whole = shown.find_first_not_of("-0123456789") == shown.npos;
  return looks_whole ? shown + ".0" : shown;  // 3.0 is no whole number, as its writer meant it
}

// The text that a basic string of TOML stands for, by JSON's rules, which lack tabs and \U; nothing
// where an escape is wrong.
std::optional<std::string> unescaped(std::string_view quoted) {
  std::string json;
  for (size_t i = 0; i < quoted.size(); ++i) {
    const std::string_view one = quoted.substr(i, quoted[i] == '\\' ? 2 : 1);
    i += one.size() - 1;
    if (one == "\t") {
      json += "\\t";
    } else if (one == "\\U") {
      const std::string_view digits = quoted.substr(i + 1, 8);
      uint32_t code = 0;
      const char* const end = std::to_address(digits.end());
      const auto [last, error] = std::from_chars(std::to_address(digits.begin()), end, code, 16);
      if (error != std::errc() || last != end || digits.size() < 8 || code > 0x10FFFF) return {};
      json += code < 0x10000 ? fmt::format("\\u{:04x}", code)
                             : fmt::format("\\u{:x}\\u{:x}",  // UTF-16
                                           0xD7C0 + (code >> 10),
                                           0xDC00 + (code & 0x3FF));
      i += digits.size();
    } else {
      json += one;
    }
  }
  const auto text = nlohmann::json::parse(json, nullptr, false);
  return text.is_string() ? std::optional(text.get<std::string>()) : std::nullopt;
}

// Reads TOML from front to back. Nothing that a flag needs is nested.
class ConfigReader {
 public:
  ConfigReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  std::vector<ConfigEntry> read() {
    check_characters();
    if (text_.starts_with(kByteOrderMark)) take(kByteOrderMark.size());
    std::vector<ConfigEntry> entries;
    std::set<std::string> keys;
    for (skip_lines(); !text_.empty(); skip_lines()) {
      ConfigEntry entry{.key = key(), .value = {}, .line = line_};
      if (!keys.insert(entry.key).second) {
        refuse(fmt::format("'{}' is given twice", printable(entry.key)));
      }
      entry.value = takes('[') ? array() : single_value();
      skip(kBlanks);
      if (next() == '#') skip_comment();
      if (next() != '\n') refuse_next("the line goes on after its value");
      entries.push_back(std::move(entry));
    }
    return entries;
  }

 private:
  // The next character; a newline at the end.
  char next() const { return text_.empty() ? '\n' : text_.front(); }
  std::string_view take(size_t count) {
    const std::string_view taken = text_.substr(0, count);
    line_ += static_cast<int>(std::ranges::count(taken, '\n'));
    text_.remove_prefix(taken.size());
    return taken;
  }
  bool takes(char c) { return text_.starts_with(c) && !take(1).empty(); }
  void skip(std::string_view some) { take(text_.find_first_not_of(some)); }
  void skip_comment() { take(text_.find('\n')); }
  void skip_lines() {
    for (skip(kLines); next() == '#'; skip(kLines)) skip_comment();
  }

  void check_characters() {
    for (std::string_view line : split_words(text_, '\n')) {
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!is_utf8(line)) refuse("it is not UTF-8");
      const auto is_bad = [](char c) { return is_control(c) && c != '\t'; };
      if (std::ranges::any_of(line, is_bad)) refuse("a control character stands in it");
      ++line_;
    }
    line_ = 1;
  }

  // Reads a key and the = after it.
  std::string key() {
    if (next() == '[') refuse_table();
    const bool is_quoted = next() == '"' || next() == '\'';
    const auto is_letter = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
    const auto end = std::ranges::find_if_not(text_, is_letter) - text_.begin();
    if (!is_quoted && end == 0) refuse_next("a line begins with the name of a flag");
    std::string name = is_quoted ? quoted() : std::string(take(static_cast<size_t>(end)));
    skip(kBlanks);
    if (next() == '.') refuse_table();
    if (!takes('=')) refuse_next("a = comes after the name of a flag");
    skip(kBlanks);
    return name;
  }

  std::string array() {
    std::string values;
    for (skip_lines(); !takes(']'); skip_lines()) {
      if (next() == '[') refuse_flag("an array in an array", "one array: [30, 60, 80]");
      values += (values.empty() ? "" : ",") + single_value();
      skip_lines();
      if (!takes(',') && next() != ']') refuse_next("values of an array stand between commas");
    }
    return values;
  }

  std::string single_value() {
    static const std::regex date_form(R"((\d{4}-|\d\d:).*)");
    if (next() == '{') refuse_table();
    if (next() == '"' || next() == '\'') return quoted();
    const std::string_view word = take(text_.find_first_of(" \t\r\n,]}#"));
    if (word.empty()) refuse_next("a value is missing");
    if (std::ranges::any_of(word, is_beyond_ascii)) refuse_not_ascii();
    if (word == "true" || word == "false") return std::string(word);
    if (has_form(word, date_form)) refuse_flag("this is a date or a time", "text in quotes");
    if (const auto number = number_text(word)) return *number;
    refuse(fmt::format("{} is neither a number nor true or false", printable(word)), kQuotes);
  }

  std::string quoted() {
    const char mark = next();
    if (text_.starts_with(std::string(3, mark))) {
      refuse_flag("a text of several lines begins", "text in quotes, on one line");
    }
    size_t end = 1;
    for (; end < text_.size() && text_[end] != mark && text_[end] != '\n'; ++end) {
      if (mark == '"' && text_[end] == '\\' && !text_.substr(end + 1).starts_with('\n')) ++end;
    }
    if (end >= text_.size() || text_[end] != mark) refuse("a text in quotes does not end");
    const std::string_view all = take(end + 1);
    if (mark == '\'') return std::string(all.substr(1, end - 1));
    if (auto result = unescaped(all)) return *std::move(result);
    refuse("a backslash stands before what it does not go with");
  }

  [[noreturn]] void fail(std::string_view what, std::string_view why, std::string_view hint) const {
    throw UsageError(
        fmt::format("{}:{}: {}", file_, line_, what), std::string(why), std::string(hint));
  }
  [[noreturn]] void refuse(std::string_view why,
                           std::string_view hint = "a line for each flag: lr = 0.1") const {
    fail("this is not TOML", why, hint);
  }
  [[noreturn]] void refuse_not_ascii() const {
    refuse("a character that is not ASCII stands outside of quotes", kQuotes);
  }
  [[noreturn]] void refuse_next(std::string_view why) const {
    if (is_beyond_ascii(next())) refuse_not_ascii();
    refuse(why);
  }
  [[noreturn]] void refuse_flag(std::string_view what, std::string_view instead) const {
    fail(what, "a file for --config holds flags as lines of TOML", instead);
  }
  [[noreturn]] void refuse_table() const {
    refuse_flag("a table begins", "flags are plain lines: name = value");
  }

  static constexpr std::string_view kQuotes = "quotes around a string: name = \"text\"";
  std::string_view text_;  // what is left
  std::string_view file_;
  int line_ = 1;
};

// 'text', or "text" with escapes where it or a terminal needs them.
std::string toml_string(std::string_view text) {
  const bool is_plain = without_controls(text) == text && text.find('\'') == text.npos;
  if (is_plain && std::ranges::none_of(text, is_control)) return fmt::format("'{}'", text);
  std::string result = "\"";
  while (!text.empty()) {
    const std::string one = cut_to(text, 1);
    const bool is_special =
        one == "\"" || one == "\\" || is_control(one[0]) || without_controls(one) != one;
    const std::string quoted =
        is_special && is_utf8(one) ? nlohmann::json(one).dump(-1, ' ', true) : '"' + one + '"';
    result += quoted.substr(1, quoted.size() - 2);
    text.remove_prefix(one.size());
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
