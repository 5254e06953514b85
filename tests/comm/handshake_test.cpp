#include "comm/handshake.h"

#include <functional>
#include <mutex>
#include <vector>

#include <gmock/gmock.h>

#include "comm/shared/thread_ranks.h"

namespace lockstep::comm::handshake_test {
namespace {

using Kind = HandshakeField::Kind;
using Fields = std::vector<HandshakeField>;
using ::testing::HasSubstr;

Fields usual_fields() {
  return {{Kind::kEnvironment, "build", "9c1f"},
          {Kind::kArgument, "--lr", "0.1"},
          {Kind::kArgument, "--epochs", "3"}};
}

// The text of format_error() on each rank; empty if the handshake succeeds.
std::vector<std::string> errors_of(int ranks, const std::function<Fields(int rank)>& fields_of) {
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  spawn_ranks(ranks, [&](Communicator& peers) {
    try {
      handshake(peers, fields_of(peers.rank()));
    } catch (const Error& error) {
      errors[static_cast<size_t>(peers.rank())] = format_error(error);
    }
  });
  return errors;
}

TEST(Handshake, EqualFieldsPass) {
  for (const int ranks : {1, 2, 5}) {
    const auto errors = errors_of(ranks, [](int) { return usual_fields(); });
    EXPECT_THAT(errors, ::testing::Each(""));
  }
}

TEST(Handshake, NamesTheFirstDifferenceOnEveryRank) {
  const auto errors = errors_of(3, [](int rank) {
    Fields fields = usual_fields();
    if (rank == 1) fields[1].value = "0.2";
    if (rank == 2) fields[2].value = "30";
    return fields;
  });
  EXPECT_THAT(errors,
              ::testing::Each("lockstep: error: ranks have different arguments\n"
                              "  why: rank 1 has --lr=0.2, rank 0 has --lr=0.1\n"
                              "  try: give every rank the same arguments\n"));
}

TEST(Handshake, ListsRanksThatAgreeWithEachOther) {
  const auto errors = errors_of(4, [](int rank) {
    Fields fields = usual_fields();
    if (rank % 2 == 1) fields[1].value = "0.2";
    if (rank == 2) fields[1].value = "0.5";
    return fields;
  });
  EXPECT_THAT(errors[0], HasSubstr("ranks 1, 3 have --lr=0.2, rank 0 has --lr=0.1"));
}

TEST(Handshake, OtherProgramsAreAnEnvironmentError) {
  spawn_ranks(2, [&](Communicator& peers) {
    Fields fields = usual_fields();
    if (peers.rank() == 1) fields[0].value = "77ab";
    try {
      handshake(peers, fields);
      ADD_FAILURE() << "no error";
    } catch (const EnvironmentError& error) {
      EXPECT_STREQ(error.what(), "ranks differ in build");
      EXPECT_EQ(error.why(), "rank 1 has build=77ab, rank 0 has build=9c1f");
    }
  });
}

TEST(Handshake, MissingFieldsDiffer) {
  for (const int shorter : {0, 1}) {
    const auto errors = errors_of(2, [&](int rank) {
      Fields fields = usual_fields();
      if (rank == shorter) fields.pop_back();
      return fields;
    });
    EXPECT_THAT(errors[0], HasSubstr("has --epochs=3"));
    EXPECT_THAT(errors[0], HasSubstr("has nothing in its place"));
    EXPECT_EQ(errors[0], errors[1]);
  }
}

TEST(Handshake, LongValuesShowWhereTheyDiffer) {
  const auto errors = errors_of(2, [](int rank) {
    std::string value(5000, 'x');
    value[4000] = rank == 0 ? 'A' : 'B';
    return Fields{{Kind::kArgument, "--names", value}};
  });
  EXPECT_THAT(errors[0], HasSubstr("xxA"));
  EXPECT_THAT(errors[0], HasSubstr("xxB"));
  EXPECT_THAT(errors[0], HasSubstr("rank 1 has --names=...xx"));
  EXPECT_LT(errors[0].size(), 500U);
}

}  // namespace
}  // namespace lockstep::comm::handshake_test
