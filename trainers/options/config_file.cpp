#include "trainers/options/config_file.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <optional>
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

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_hex_digit(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

std::string utf8_of(uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  std::string tail;
  uint32_t most = 0x3F, mark = 0x80;  // of the first byte
  for (; code > most; code >>= 6) {
    tail.insert(tail.begin(), static_cast<char>(0x80 | (code & 0x3F)));
    mark = 0x80 | (mark >> 1);
    most >>= 1;
  }
  return static_cast<char>(mark | code) + tail;
}

// 1979-05-27 or 07:32:00, and what continues them.
bool is_date(std::string_view word) {
  const auto digits = std::ranges::find_if_not(word, is_digit) - word.begin();
  const std::string_view rest = word.substr(static_cast<size_t>(digits));
  return (digits == 4 && rest.starts_with('-')) || (digits == 2 && rest.starts_with(':'));
}

template <class Number>
std::optional<Number> number_of(std::string_view digits, int base) {
  Number number = 0;
  if (digits.empty() || !std::ranges::all_of(digits, is_hex_digit)) return std::nullopt;
  const char* const end = std::to_address(digits.end());
  const auto [last, error] = std::from_chars(std::to_address(digits.begin()), end, number, base);
  return error == std::errc() && last == end ? std::optional(number) : std::nullopt;
}

// Whether a word has the form of a decimal number; the first digit of several is not 0.
bool is_decimal(std::string_view word) {
  const auto takes = [&](std::string_view some) {
    const bool is_there = !word.empty() && some.find(word.front()) != some.npos;
    if (is_there) word.remove_prefix(1);
    return is_there;
  };
  const auto takes_digits = [&] {
    const size_t before = word.size();
    while (takes("0123456789")) continue;
    return word.size() < before;
  };
  takes("+-");
  const bool is_whole = takes("0") || takes_digits();
  const bool is_real = !takes(".") || takes_digits();
  const bool has_exponent = takes("eE");
  if (has_exponent) takes("+-");
  return is_whole && is_real && (!has_exponent || takes_digits()) && word.empty();
}

// TOML's number in the form that parse_int() and parse_float() read; nothing for another word.
std::optional<std::string> number_text(std::string_view word) {
  const int base = word.starts_with("0x")   ? 16
                   : word.starts_with("0o") ? 8
                   : word.starts_with("0b") ? 2
                                            : 10;
  const auto is_part = base == 10 ? is_digit : is_hex_digit;
  std::string text;
  for (size_t i = base == 10 ? 0 : 2; i < word.size(); ++i) {
    const bool is_between =
        i > 0 && i + 1 < word.size() && is_part(word[i - 1]) && is_part(word[i + 1]);
    if (word[i] != '_') text += word[i];
    if (word[i] == '_' && !is_between) return std::nullopt;
  }
  if (base != 10) {
    const auto number = number_of<int64_t>(text, base);
    return number ? std::optional(std::to_string(*number)) : std::nullopt;
  }
  if (text.starts_with('+')) text.erase(0, 1);
  if (text == "inf" || text == "-inf" || text == "nan" || text == "-nan") return text;
  if (!is_decimal(word.front() == '+' ? "+" + text : text)) return std::nullopt;
  if (text.find_first_of(".eE") == text.npos) {
    const auto whole = parse_int(text);
    return whole ? std::optional(std::to_string(*whole)) : std::nullopt;
  }
  const auto real = parse_float(text);
  if (!real) return std::nullopt;
  const std::string shown = fmt::format("{}", *real);
  const bool looks_whole = shown.find_first_not_of("-0123456789") == shown.npos;
  return looks_whole ? shown + ".0" : shown;  // 3.0 is no whole number, as its writer meant it
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
      if (next() == '[') refuse_table();
      ConfigEntry entry{.key = key(), .value = {}, .line = line_};
      if (!keys.insert(entry.key).second) {
        refuse(fmt::format("'{}' is given twice", printable(entry.key)));
      }
      entry.value = value();
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

  // With the = after it.
  std::string key() {
    std::string name;
    if (next() == '"' || next() == '\'') {
      name = quoted(false);
    } else {
      const auto is_letter = [](unsigned char c) {
        return std::isalnum(c) || c == '-' || c == '_';
      };
      const auto end = std::ranges::find_if_not(text_, is_letter);
      name = take(static_cast<size_t>(end - text_.begin()));
      if (name.empty()) refuse_next("a line begins with the name of a flag");
    }
    skip(kBlanks);
    if (next() == '.') refuse_table();
    if (!takes('=')) refuse_next("a = comes after the name of a flag");
    skip(kBlanks);
    return name;
  }

  std::string value() { return takes('[') ? array() : single_value(); }

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
    if (next() == '{') refuse_table();
    if (next() == '"' || next() == '\'') return quoted(true);
    const std::string_view word = take(text_.find_first_of(" \t\r\n,]}#"));
    if (word.empty()) refuse_next("a value is missing");
    if (std::ranges::any_of(word, is_beyond_ascii)) refuse_not_ascii();
    if (word == "true" || word == "false") return std::string(word);
    if (is_date(word)) refuse_flag("this is a date or a time", "text in quotes");
    if (const auto number = number_text(word)) return *number;
    refuse(fmt::format("{} is neither a number nor true or false", printable(word)), kQuotes);
  }

  std::string quoted(bool may_be_long) {
    const std::string three(3, next());
    const bool is_long = may_be_long && text_.starts_with(three);
    const std::string_view mark = std::string_view(three).substr(is_long ? 0 : 2);
    const int begin = line_;
    take(mark.size());
    if (is_long) take(text_.starts_with("\r\n") ? 2 : text_.starts_with('\n') ? 1 : 0);
    std::string result;
    while (!text_.starts_with(mark)) {
      if (text_.empty() || (!is_long && next() == '\n')) {
        line_ = begin;
        refuse("a text in quotes does not end");
      }
      const bool is_escape = mark.front() == '"' && takes('\\');
      result += is_escape ? escaped(is_long) : std::string(take(1));
    }
    const size_t quotes = std::min(text_.find_first_not_of(mark.front()), text_.size());
    const size_t inner = is_long ? std::min<size_t>(quotes - mark.size(), 2) : 0;  // before the end
    take(inner + mark.size());
    return result + three.substr(0, inner);
  }

  // Reads the rest of an escape, whose backslash was taken. Returns the text that it stands for.
  std::string escaped(bool may_end_a_line) {
    constexpr std::string_view kLetters = "btnfr\"\\", kMeanings = "\b\t\n\f\r\"\\";
    const size_t word = text_.find_first_not_of(kBlanks);
    if (may_end_a_line && word < text_.size() && text_[word] == '\n') {
      skip(kLines);
      return {};
    }
    const char letter = next();
    if (const size_t at = kLetters.find(letter); at != kLetters.npos) {
      take(1);
      return {kMeanings[at]};
    }
    const size_t digits = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    const std::string_view sequence = text_.substr(0, 1 + digits);
    const auto code =
        number_of<uint32_t>(sequence.substr(std::min<size_t>(sequence.size(), 1)), 16);
    const bool is_character = code && (*code < 0xD800 || (*code > 0xDFFF && *code < 0x110000));
    if (sequence.size() <= digits || !is_character) {
      refuse_next("a backslash stands before what it does not go with");
    }
    take(sequence.size());
    return utf8_of(*code);
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
    refuse("a character that is not ASCII stands outside of quotes, or after a backslash", kQuotes);
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
