#include "trainers/options/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/words.h"
#include "tests/support/temp_dir.h"
#include "tests/trainers/options_of.h"

namespace lockstep::trainers::config_file_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::options_of;
using testing::refusal;
using ::testing::StartsWith;
using testing::TempDir;
using testing::write_text;

std::vector<std::string> entries(std::string_view text) {
  std::vector<std::string> shown;
  for (const ConfigEntry& entry : parse_config(text, "f")) {
    shown.push_back(fmt::format("{}|{}|{}", entry.line, entry.key, entry.value));
  }
  return shown;
}

std::string refused(std::string_view text) {
  const auto error = testing::usage_error([&] { parse_config(text, "f"); });
  return error ? fmt::format("{} | {}", error->what(), error->why()) : "accepted";
}

TEST(ConfigFile, ReadsTomlsValues) {
  EXPECT_THAT(
      entries(
          "# a file\r\n\n lr = 1e-4 # rate\nname='a#b\\n' \n\"data\" = \"a\\tb # \\u00e9\\\"\"\n"
          "lr-milestones = [ 30, # first\n 60, ]\nsync_bn=true\nseed = 1_000"),
      ElementsAre("3|lr|0.0001",
                  "4|name|a#b\\n",
                  "5|data|a\tb # \xc3\xa9\"",
                  "6|lr-milestones|30,60",
                  "8|sync_bn|true",
                  "9|seed|1000"));
  EXPECT_THAT(entries(""), ElementsAre());
  EXPECT_THAT(entries("a = \"\"\nb = ''"), ElementsAre("1|a|", "2|b|"));
  EXPECT_THAT(entries("a = \"\\U0001F600\""), ElementsAre("1|a|\xf0\x9f\x98\x80"));
  EXPECT_THAT(entries("\xef\xbb\xbf# \u00e4\na = \"\\\"\u00e4\" # \u00e4\nb = '\u00e4\\'"),
              ElementsAre("2|a|\"\u00e4", "3|b|\u00e4\\"));
}

TEST(ConfigFile, KeepsWhatANumberIs) {
  EXPECT_THAT(entries("a = 3\nb = 3.0\nc = -1e3\nd = 0x10\ne = 1e300\nf = -0.0"),
              ElementsAre("1|a|3", "2|b|3.0", "3|c|-1000.0", "4|d|16", "5|e|1e+300", "6|f|-0.0"));
  EXPECT_THAT(entries("a = +7\nb = 0b1_0\nc = 0o17\nd = -inf\ne = +1_0.5E+1\nf = 0"),
              ElementsAre("1|a|7", "2|b|2", "3|c|15", "4|d|-inf", "5|e|105.0", "6|f|0"));
}

TEST(ConfigFile, RefusesWhatIsNotToml) {
  EXPECT_THAT(refused("# c\nlr 0.1"), StartsWith("f:2: this is not TOML | "));
  EXPECT_THAT(refused("lr = 1\nlr = 2"), AllOf(StartsWith("f:2: "), HasSubstr("'lr'")));
  for (const char* text : {"= 1",         "lr =",
                           "lr = 1 2",    "a = 'x\n'",
                           "a = \"\\q\"", "a = \"\\ud800\"",
                           "a = [1 2]",   "a = [1,",
                           "a = [}=1]",   "a = convnet",
                           "a = 01",      "a = 1.",
                           "a = .5",      "a = 1__0",
                           "a = 1_",      "a = -0x1",
                           "a = 0x",      "a = +-1",
                           "a = 1e",      "a = 9223372036854775808",
                           "a = 1e400",   "a = \"\\u00e",
                           "a = \"\\",    "a = \"\xff\""}) {
    EXPECT_THAT(refused(text), StartsWith("f:1: this is not TOML | ")) << text;
  }
  EXPECT_THAT(refused("# \u00e4\na = \"\\\"\u00e4\" \u00e4"),
              StartsWith("f:2: this is not TOML | a character that is not ASCII stands outside"));
  for (const char* text :
       {"a = 0'''\u00e4'''", "a = ='\u00e4'", "a = 1['\u00e4'"}) {  // quotes in words
    EXPECT_THAT(refused(text), StartsWith("f:1: this is not TOML | a character")) << text;
  }
  EXPECT_THAT(refused("a = \"\\\u00a0\""), HasSubstr("a backslash stands before"));
  EXPECT_THAT(refused("a = tcp://h:1"), StartsWith("f:1: this is not TOML | "));
  EXPECT_THAT(refused("a = \"\x01\""), StartsWith("f:1: this is not TOML | a control character"));
  EXPECT_THAT(refused("\"\\u001b[31m\" = 1\n\"\\u001b[31m\" = 1"),
              AllOf(StartsWith("f:2: this is not TOML | "), Not(HasSubstr("\x1b"))));
}

TEST(ConfigFile, RefusesWhatIsNoFlag) {
  EXPECT_THAT(refused("lr = 1\n[table]\n"), StartsWith("f:2: a table begins | "));
  EXPECT_THAT(refused("a = [1,\n2] # [\n \t[&c]"), StartsWith("f:3: a table begins | "));
  EXPECT_THAT(refused("a = [[1],\n[2]]"), StartsWith("f:1: an array in an array | "));
  EXPECT_THAT(refused("a.b = 1"), StartsWith("f:1: a table begins | "));
  EXPECT_THAT(refused("a = {b = 1}"), StartsWith("f:1: a table begins | "));
  EXPECT_THAT(refused("a = [\n{'\u00e4' = 1}]"), StartsWith("f:2: a table begins | "));
  EXPECT_THAT(refused("a = [1, [2]]"), StartsWith("f:1: an array in an array | "));
  for (const char* text : {"a = \"\"\"x\"\"\"", "'''a''' = 1"}) {
    EXPECT_THAT(refused(text), StartsWith("f:1: a text of several lines begins | ")) << text;
  }
  for (const char* text : {"a = 1979-05-27", "a = [1, 07:32:00]"}) {
    EXPECT_THAT(refused(text), StartsWith("f:1: this is a date or a time | ")) << text;
  }
}

// A recursive reader would overflow its stack.
TEST(ConfigFile, RefusesWhatIsNestedHoweverDeeply) {
  constexpr int kDeep = 1'000'000;
  std::string dotted = "a", tables = "a = ";
  for (int depth = 0; depth < kDeep; ++depth) {
    dotted += ".a";
    tables += "{a=";
  }
  EXPECT_THAT(refused(dotted + " = 1"), StartsWith("f:1: a table begins | "));
  EXPECT_THAT(refused('[' + dotted + ']'), StartsWith("f:1: a table begins | "));
  EXPECT_THAT(refused(tables), StartsWith("f:1: a table begins | "));
  EXPECT_THAT(refused("a = " + std::string(kDeep, '[')),
              StartsWith("f:1: an array in an array | "));
}

// Some values of a flag that are worth testing in a file.
std::vector<std::string> values_of(const Flag& flag) {
  switch (flag.kind) {
    case FlagKind::kBool:
      return {"true", "false"};
    case FlagKind::kChoice: {
      std::vector<std::string> choices;
      for (const auto choice : split_words(flag.choices.resnet, '|')) choices.emplace_back(choice);
      return choices;
    }
    case FlagKind::kString:
      return {"plain",
              "it's \"a\\b\" #1",
              "tab\tnewline\n\x7f",
              "\xc3\xa9 [x], = true",
              "\u202e \u009b31m \U0001F600 \u202c"};
    case FlagKind::kInt:
      return {fmt::format("{}", flag.range.max), "+7"};
    case FlagKind::kFloat:
      break;
  }
  return {fmt::format("{}", flag.range.max), ".5", "1e-5", "1E-5"};
}

// The values of every flag must be read as they were written.
TEST(ConfigFile, RoundTripOverAllFlags) {
  const TempDir dir;
  const std::string file = (dir / "run.toml").string();
  int round_trips = 0;
  for (const Flag& flag : flag_table()) {
    if (only_prints(flag) || flag.name == "config" || !flag.means.empty()) continue;
    for (const std::string& value : values_of(flag)) {
      const std::vector<std::string> line = {fmt::format("--{}={}", flag.name, value)};
      const auto nothing = [](const char*) { return nullptr; };
      Options typed;
      try {
        typed = read_options(Program::kTrainResnet, line, nothing);
      } catch (const UsageError&) {
        continue;  // "+7" is beyond some ranges
      }
      write_text(file, config_text(typed));
      const Options read =
          read_options(Program::kTrainResnet, std::vector<std::string>{"--config", file}, nothing);
      ASSERT_EQ(read.find(flag.name)->origin, Origin::kConfigFile) << flag.name;
      for (const ResolvedFlag& setting : typed.resolved()) {
        const std::string& got = read.text(setting.name);
        if (setting.name == flag.name && flag.kind == FlagKind::kFloat) {
          EXPECT_EQ(parse_float(got), parse_float(setting.value)) << setting.name;
        } else if (setting.name == flag.name && flag.kind == FlagKind::kInt) {
          EXPECT_EQ(parse_int(got), parse_int(setting.value)) << setting.name;
        } else {
          EXPECT_EQ(got, setting.value) << setting.name;
        }
      }
      ++round_trips;
    }
  }
  EXPECT_GT(round_trips, 200);
}

class ConfigOption : public ::testing::Test {
 protected:
  std::string with(std::string_view text) const {
    write_text(dir_ / "run.toml", text);
    return "-c " + (dir_ / "run.toml").string();
  }
  const TempDir dir_;
};

TEST_F(ConfigOption, StandsBetweenPresetAndEnvironment) {
  const std::string line = with("preset = 'demo-baseline'\nepochs = 5\nlr = 0.5\nwd = 0.1\n");
  const Options options = options_of(line + " --lr 0.25", {{"LOCKSTEP_EPOCHS", "7"}});
  EXPECT_EQ(options.number("lr"), 0.25);
  EXPECT_EQ(options.number("epochs"), 7);
  EXPECT_EQ(options.number("weight-decay"), 0.1);
  EXPECT_EQ(options.integer("batch-size"), 32) << "the preset's";
  EXPECT_TRUE(options.given("weight-decay"));
  EXPECT_EQ(options_of("", {{"LOCKSTEP_CONFIG", (dir_ / "run.toml").string()}}).number("lr"), 0.5);
  EXPECT_EQ(options_of(line + " -e 9").number("epochs"), 9) << "as that preset spells it";
  EXPECT_EQ(options_of(line + " -e 9", {{"LOCKSTEP_PRESET", ""}}).number("epochs"), 9)
      << "an empty variable is none";
}

TEST_F(ConfigOption, ErrorsNameFileAndLine) {
  const std::string file = (dir_ / "run.toml").string();
  EXPECT_THAT(refusal(with("lr = 0.1\nepochs = -1")),
              StartsWith(file + ":2: bad value: --epochs -1 | --epochs takes"));
  EXPECT_THAT(refusal(with("lr = 0.1\nseed = 3.0")),
              StartsWith(file + ":2: bad value: --seed 3.0 | "));
  EXPECT_THAT(refusal(with("lr = nan")), StartsWith(file + ":1: bad value: --lr nan | "));
  EXPECT_THAT(refusal(with("epoch = 3")), HasSubstr(":1: unknown flag --epoch"));
  EXPECT_THAT(refusal(with("help = true")), HasSubstr(":1: --help | it is for the command line"));
  EXPECT_THAT(refusal(with("config = 'x'")), HasSubstr(":1: --config | "));
  EXPECT_THAT(refusal("--config /none"), StartsWith("--config /none cannot be read"));
  EXPECT_THAT(refusal(with("dummy = true\ngpu = 0")), "accepted");
  EXPECT_THAT(refusal("-q" + with("lr = 1").substr(1)), HasSubstr("is not read"));
}

TEST_F(ConfigOption, IsPrintedWithoutWhatATerminalActsOn) {
  const Options options = options_of("--print-config --data \u202e\u009b31m\u00e9");
  EXPECT_THAT(config_text(options), HasSubstr("data = \"\\u202e\\u009b31m\u00e9\"\n"));
}

TEST_F(ConfigOption, IsPrintedWithWhatElseIsSettled) {
  const Options options = options_of("--print-config --lr 0.50 --amp --data it's");
  EXPECT_EQ(options.request, Request::kPrintConfig);
  EXPECT_THAT(config_text(options),
              AllOf(HasSubstr("\ndata = \"it's\"\nlr = 0.5\nopt-level = 'O1'\n\n#"),
                    HasSubstr("# epochs = 3  # default\n")));
}

}  // namespace
}  // namespace lockstep::trainers::config_file_test
