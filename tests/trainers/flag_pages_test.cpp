#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/words.h"
#include "tests/trainers/options_of.h"
#include "trainers/options/parser.h"

namespace lockstep::trainers::flag_pages_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::options_of;

TEST(FlagPages, AreAskedForByFlags) {
  EXPECT_EQ(options_of("--completion zsh").request, Request::kCompletion);
  EXPECT_EQ(options_of("--man").request, Request::kMan);
}

TEST(FlagPages, CompletionsHaveEveryFlagAndAlias) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string text = completion_text(Program::kTrainResnet, shell);
    const bool fish = std::string_view(shell) == "fish";
    for (const Flag& flag : flag_table()) {
      const bool is_on = flag.initial.resnet == "true";
      const std::string name = fmt::format("{}{}", is_on ? "no-" : "", flag.name);
      EXPECT_THAT(text, HasSubstr(fish ? " -l " + name + " " : "--" + name)) << shell;
      for (const std::string_view alias : split_words(flag.aliases, ' ')) {
        const size_t dashes = alias.starts_with("--") ? 2 : 1;
        const std::string shown =
            fish ? fmt::format(" -{} {}", dashes == 2 ? 'l' : 's', alias.substr(dashes))
                 : std::string(alias);
        EXPECT_THAT(text, HasSubstr(shown)) << shell;
      }
    }
  }
  const std::string convnet = completion_text(Program::kTrainConvnet, "bash");
  EXPECT_THAT(convnet, Not(HasSubstr("cifar-stem")));
  EXPECT_THAT(convnet, HasSubstr("--arch|-a|--model) COMPREPLY=($(compgen -W 'convnet toy_net'"));
}

TEST(FlagPages, CompletionsKeepApostrophes) {
  for (const char* shell : {"zsh", "fish"}) {
    EXPECT_THAT(completion_text(Program::kTrainResnet, shell),
                HasSubstr(R"(leave out an epoch'\''s last step)"))
        << shell;
  }
}

TEST(FlagPages, ManualPageHasEveryFlagInRoff) {
  const std::string page = man_text(Program::kTrainResnet);
  EXPECT_THAT(page, HasSubstr(".TH TRAIN_RESNET 1"));
  for (const Flag& flag : flag_table()) {
    std::string name =
        fmt::format("\\fB--{}{}\\fR", flag.initial.resnet == "true" ? "no-" : "", flag.name);
    for (size_t at = name.find('-'); at != std::string::npos; at = name.find('-', at + 2)) {
      name.insert(at, "\\");
    }
    EXPECT_THAT(page, HasSubstr(".TP\n" + name)) << flag.name;
  }
  for (size_t at = page.find('-'); at != std::string::npos; at = page.find('-', at + 1)) {
    EXPECT_EQ(page[at - 1], '\\') << "a hyphen where a dash is meant: " << page.substr(at - 20, 40);
  }
}

}  // namespace
}  // namespace lockstep::trainers::flag_pages_test
