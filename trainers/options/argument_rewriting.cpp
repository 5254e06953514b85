#include "trainers/options/argument_rewriting.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "trainers/options/flag_value.h"
#include "trainers/options/foreign_flags.h"
#include "trainers/options/spelling.h"

namespace lockstep::trainers {
namespace {

bool is_long(std::string_view argument) {
  return argument.size() > 2 && argument.starts_with("--");
}

bool is_short(std::string_view argument) {
  return argument.size() > 1 && argument[0] == '-' && argument[1] != '-';
}

// "-b" of "-b=64"; long names with - for _.
std::string flag_part(std::string_view argument) {
  std::string name(argument.substr(0, argument.find('=')));
  if (is_long(name)) std::replace(name.begin() + 2, name.end(), '_', '-');
  return name;
}

class Rewriter {
 public:
  Rewriter(Program program, std::span<const std::string> arguments, std::string_view source)
      : program_(program), source_(source), arguments_(arguments) {}

  RewrittenArguments run() {
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (argument == "--") {
        result_.arguments.insert(result_.arguments.end(),
                                 arguments_.begin() + static_cast<ptrdiff_t>(next_ - 1),
                                 arguments_.end());
        break;
      }
      if (is_long(argument)) {
        rewrite_long(argument);
      } else if (is_short(argument)) {
        rewrite_short(argument);
      } else {
        result_.arguments.push_back(argument);
      }
    }
    return std::move(result_);
  }

 private:
  void rewrite_long(const std::string& argument) {
    const std::string name = flag_part(argument);
    read_explicit_value(argument);
    if (const ForeignFlag* foreign = find_foreign_flag(name.substr(2))) {
      rewrite_foreign(*foreign, name);
      return;
    }
    if (const Flag* flag = find_flag(name)) {
      rewrite_known(*flag, name, false);
      return;
    }
    const bool negated = name.starts_with("--no-");
    const Flag* positive = negated ? find_flag("--" + name.substr(5)) : nullptr;
    if (positive == nullptr || positive->kind != FlagKind::kBool)
      throw unknown_flag(program_, name);
    rewrite_known(*positive, name, true);
  }

  // -b 64, -b=64 and a lone -q are put in long form; -b64 and -qv are the parser's to take apart.
  void rewrite_short(const std::string& argument) {
    const std::string name = flag_part(argument);
    const Flag* flag = find_flag(name.substr(0, 2));
    if (flag == nullptr) throw unknown_flag(program_, argument);
    if (name.size() == 2) {
      read_explicit_value(argument);
      rewrite_known(*flag, name, false);
      return;
    }
    if (!flag->built()) throw not_built(*flag, program_, shown(name.substr(0, 2)));
    result_.arguments.push_back(argument);
  }

  void rewrite_known(const Flag& flag, const std::string& name, bool negated) {
    if (!flag.of(program_)) {
      throw UsageError(fmt::format("{} is a flag of train_resnet", name),
                       fmt::format("{} has no use for it", name_of(program_)),
                       "leave it out");
    }
    if (!flag.built()) throw not_built(flag, program_, shown(name));
    if (flag.kind != FlagKind::kBool) {
      const std::string value =
          take_value([&] { throw missing_value(flag, program_, shown(name)); });
      check_flag_value(flag, program_, shown(name), value);
      result_.arguments.push_back(fmt::format("--{}={}", flag.name, value));
      return;
    }
    const std::string value = take_bool();
    check_flag_value(flag, program_, shown(name), value);
    const bool on = parse_bool(value).value_or(true) != negated;
    if (flag.means.empty()) {
      result_.arguments.push_back(fmt::format("--{}={}", flag.name, on));
    } else if (on) {
      rewrite_long(std::string(flag.means));
    }
  }

  void rewrite_foreign(const ForeignFlag& foreign, const std::string& name) {
    std::string value;
    if (foreign.takes_value) {
      value = take_value([&] {
        throw UsageError(fmt::format("{} needs a value", name),
                         std::string(foreign.reason),
                         std::string(foreign.instead));
      });
    } else {
      value = take_bool();
      if (parse_bool(value) == true) value.clear();
    }
    result_.notes.push_back(answer_foreign_flag(foreign, value));
  }

  void read_explicit_value(const std::string& argument) {
    const size_t equals = argument.find('=');
    explicit_value_.reset();
    if (equals != std::string::npos) explicit_value_ = argument.substr(equals + 1);
  }

  template <class Missing>
  std::string take_value(Missing&& missing) {
    if (!explicit_value_ && next_ < arguments_.size() && !is_flag(arguments_[next_])) {
      explicit_value_ = arguments_[next_++];
    }
    std::string value = explicit_value_.value_or("");
    if (value.empty()) missing();
    return value;
  }

  std::string take_bool() {
    if (explicit_value_) return *explicit_value_;
    if (next_ < arguments_.size() && parse_bool(arguments_[next_])) return arguments_[next_++];
    return "true";
  }

  // A negative number is a value.
  static bool is_flag(std::string_view argument) {
    return is_long(argument) || argument == "--" ||
           (is_short(argument) && find_flag(argument.substr(0, 2)) != nullptr);
  }

  std::string_view shown(std::string_view name) const { return source_.empty() ? name : source_; }

  Program program_;
  std::string_view source_;
  std::span<const std::string> arguments_;
  size_t next_ = 0;
  std::optional<std::string> explicit_value_;
  RewrittenArguments result_;
};

}  // namespace

RewrittenArguments rewrite_arguments(Program program,
                                     std::span<const std::string> arguments,
                                     std::string_view source) {
  return Rewriter(program, arguments, source).run();
}

UsageError unknown_flag(Program program, std::string_view argument) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> switches;
  for (const Flag& flag : flag_table()) {
    if (!flag.of(program)) continue;
    names.push_back(flag.name);
    if (flag.kind == FlagKind::kBool) switches.push_back(flag.name);
    for (std::string_view alias : split_words(flag.aliases, ' ')) {
      if (alias.size() > 3) names.push_back(alias.substr(2));
    }
  }
  const std::string flag = flag_part(argument);
  std::string_view word = flag;
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string_view nearest = nearest_word(word, names);
  std::string_view prefix = "--";
  if (nearest.empty() && word.starts_with("no-")) {
    nearest = nearest_word(word.substr(3), switches);
    if (!nearest.empty()) prefix = "--no-";
  }
  if (nearest.empty() && word.starts_with("no-")) nearest = nearest_word(word.substr(3), names);
  return UsageError(fmt::format("unknown flag {}", flag),
                    fmt::format("{} has no such flag", name_of(program)),
                    nearest.empty() ? fmt::format("{} --help", name_of(program))
                                    : fmt::format("did you mean {}{}?", prefix, nearest));
}

}  // namespace lockstep::trainers
