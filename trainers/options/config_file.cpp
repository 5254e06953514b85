#include "trainers/options/config_file.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0  // an error is a result, which carries its line
#define TOML_ENABLE_FORMATTERS 0
// toml++ 3.3 asserts conditions that wrong files violate, and refuses these files only behind the
// assertions. With NDEBUG the compiler may assume that the conditions hold.
#define TOML_ASSERT(condition) static_cast<void>(0)
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "core/error.h"
#include "core/version.h"
#include "core/words.h"

namespace lockstep::trainers {
namespace {

// Scans TOML's characters and tracks the context of each, as toml++ reads them up to its first
// error.
class TomlCharacters {
 public:
  explicit TomlCharacters(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark
  }

  bool ends() const { return at_ >= text_.size(); }
  int line() const { return line_; }
  bool is_stray() const { return (is_plain() || trims_) && is_beyond_ascii(at_); }
  bool begins_table() const {
    if (!is_plain()) return false;
    return is_value_ ? character() == '{' && !is_word_ : character() == '[' && line_is_blank_;
  }

  void advance() {
    const char c = character();
    size_t count = 1;
    trims_ = trims_ && is_one_of(" \t\r\n");
    if (c == '\n') {
      begin_line();
    } else if (!is_plain()) {
      count = within_quotes(c);
    } else if (is_one_of(" \t\r,]}")) {
      is_word_ = false;
      if (c == ']') --arrays_;
    } else if (c == '#') {
      inside_ = text_.substr(at_, 1);
    } else if (!is_word_ && is_one_of("'\"")) {
      count = quotes() == 2 ? 2 : std::min<size_t>(quotes(), 3);  // two: an empty string
      if (count != 2) inside_ = text_.substr(at_, count);
    } else if (is_value_) {
      is_word_ = is_word_ || c != '[';
      if (!is_word_) ++arrays_;
    } else {
      is_value_ = c == '=';
    }
    line_is_blank_ = c == '\n' || (line_is_blank_ && (c == ' ' || c == '\t'));
    at_ += count;
  }

 private:
  char character() const { return text_[at_]; }
  bool is_beyond_ascii(size_t at) const { return static_cast<unsigned char>(text_[at]) >= 0x80; }
  bool is_plain() const { return inside_.empty(); }  // in no quotes and no comment
  bool is_one_of(std::string_view some) const { return is_one_of(some, at_); }
  bool is_one_of(std::string_view some, size_t at) const {
    return some.find(text_[at]) != some.npos;
  }
  // The number of repetitions of the current character.
  size_t quotes() const {
    const size_t end = text_.find_first_not_of(character(), at_);
    return std::min(end, text_.size()) - at_;
  }

  void begin_line() {
    ++line_;
    if (inside_.size() == 1) inside_ = {};  // a comment; a string in single quotes is an error here
    is_word_ = false;
    if (is_plain() && arrays_ <= 0) is_value_ = false, arrays_ = 0;
  }
  // The number of characters left.
  size_t within_quotes(char c) {
    if (inside_[0] == '"' && c == '\\') {
      const size_t next = at_ + 1;
      if (next == text_.size()) return 1;
      trims_ = inside_.size() == 3 && (is_beyond_ascii(next) || is_one_of(" \t\r\n", next));
      return trims_ || text_[next] == '\n' ? 1 : 2;
    }
    if (inside_[0] == '#' || !text_.substr(at_).starts_with(inside_)) return 1;
    const bool one = inside_.size() == 1;
    inside_ = {};
    return one ? 1 : std::min<size_t>(quotes(), 5);  // two may come before the three that end it
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1, arrays_ = 0;
  bool line_is_blank_ = true;
  bool trims_ = false;       // after a backslash that takes white space out of a string
  bool is_value_ = false;    // after a line's =
  bool is_word_ = false;     // in a value without quotes, where quotes are letters like others
  std::string_view inside_;  // what ends it: one quote or three, or # for a comment
};

class ConfigReader {
 public:
  explicit ConfigReader(std::string_view file) : file_(file) {}

  std::vector<ConfigEntry> read(std::string_view text) const {
    refuse_what_stops_the_parser(text);
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
  // toml++ 3.3 takes characters beyond ASCII for white space, or reaches code that it declares
  // unreachable.
  void refuse_what_stops_the_parser(std::string_view text) const {
    for (TomlCharacters at(text); !at.ends(); at.advance()) {
      if (at.begins_table()) refuse_table(at.line());
      if (at.is_stray()) {
        throw UsageError(where(at.line()) + "this is not TOML",
                         "a character that is not ASCII stands outside of quotes, or after a "
                         "backslash",
                         "quotes around a string: name = \"text\"");
      }
    }
  }

  std::string where(int64_t line) const { return fmt::format("{}:{}: ", file_, line); }
  std::string where(const toml::source_region& place) const { return where(place.begin.line); }

  [[noreturn]] void refuse(int64_t line, std::string_view what, std::string_view instead) const {
    throw UsageError(where(line) + std::string(what),
                     "a file for --config holds flags as lines of TOML",
                     std::string(instead));
  }
  [[noreturn]] void refuse(const toml::node& node,
                           std::string_view what,
                           std::string_view instead) const {
    refuse(int64_t{node.source().begin.line}, what, instead);
  }
  [[noreturn]] void refuse_table(int64_t line) const {
    refuse(line, "a table begins", "flags are plain lines: name = value");
  }

  std::string text_of(const toml::node& node) const {
    if (const auto* const array = node.as_array()) return text_of(*array);
    if (node.is_table()) refuse_table(node.source().begin.line);
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
