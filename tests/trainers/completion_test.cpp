#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/words.h"
#include "tests/trainers/options_of.h"
#include "trainers/options/parser.h"

namespace lockstep::trainers::completion_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::options_of;

TEST(Completion, IsAskedForByAFlag) {
  EXPECT_EQ(options_of("--completion bash").request, Request::kCompletion);
}

TEST(Completion, HasEveryFlagAndAlias) {
  const std::string text = bash_completion(Program::kTrainResnet);
  for (const Flag& flag : flag_table()) {
    const bool is_on = flag.initial.resnet == "true";
    EXPECT_THAT(text, HasSubstr(fmt::format("--{}{}", is_on ? "no-" : "", flag.name)));
    for (const std::string_view alias : split_words(flag.aliases, ' ')) {
      EXPECT_THAT(text, HasSubstr(std::string(alias)));
    }
  }
  const std::string convnet = bash_completion(Program::kTrainConvnet);
  EXPECT_THAT(convnet, Not(HasSubstr("cifar-stem")));
  EXPECT_THAT(convnet, HasSubstr("--arch|-a|--model) COMPREPLY=($(compgen -W 'convnet toy_net'"));
}

}  // namespace
}  // namespace lockstep::trainers::completion_test
