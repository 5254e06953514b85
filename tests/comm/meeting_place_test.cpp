#include "comm/meeting_place.h"

#include <map>

#include <gmock/gmock.h>

#include "core/error.h"

namespace lockstep::comm::meeting_place_test {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

struct Environment {
  Variables variables;

  const char* operator()(const char* name) const {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  }
};

TEST(MeetingPlace, UrlsNameAnAddressOrAFile) {
  const MeetingPlace place = parse_meeting_url("tcp://node7:29500");
  EXPECT_EQ(place.host, "node7");
  EXPECT_EQ(place.ports, std::vector<uint16_t>{29500});
  EXPECT_TRUE(place.token.empty());
  EXPECT_EQ(to_string(place), "node7:29500");
  EXPECT_EQ(parse_meeting_url("tcp://[::1]:80").host, "::1");
  EXPECT_EQ(parse_meeting_url("file:///tmp/meet").file, "/tmp/meet");
  EXPECT_EQ(to_string(parse_meeting_url("file:///tmp/meet")), "the file /tmp/meet");
}

TEST(MeetingPlace, PortZeroIsOneOfSeveralThatFollowFromTheUser) {
  const MeetingPlace place = parse_meeting_url("tcp://127.0.0.1:0");
  EXPECT_EQ(place.ports.size(), 8U);
  for (const uint16_t port : place.ports) {
    EXPECT_GE(port, 20000);
    EXPECT_LT(port, 32000);
  }
  EXPECT_EQ(place.ports, parse_meeting_url("tcp://elsewhere:0").ports);
  EXPECT_FALSE(place.token.empty());
}

TEST(MeetingPlace, OtherUrlsAreRefusedWithTheWayOut) {
  for (const char* url : {"tcp://",
                          "tcp://host",
                          "tcp://:80",
                          "tcp://host:",
                          "tcp://host:FREEPORT",
                          "tcp://host:65536",
                          "tcp://host:-1",
                          "file://",
                          "http://host:80",
                          "nonsense"}) {
    try {
      parse_meeting_url(url);
      ADD_FAILURE() << url;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("is not a place where ranks can meet"));
      EXPECT_THAT(error.hint(), HasSubstr("tcp://HOST:PORT"));
    }
  }
}

TEST(MeetingPlace, MasterVariables) {
  const MeetingPlace place =
      environment_place(Environment{{{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}}});
  EXPECT_EQ(to_string(place), "node7:29500");
  const MeetingPlace here = environment_place(Environment{});
  EXPECT_EQ(here.host, "127.0.0.1");
  EXPECT_EQ(here.ports.size(), 8U);
  EXPECT_THROW(environment_place(Environment{{{"MASTER_PORT", "x"}}}), EnvironmentError);
}

// torchrun's agent itself listens on MASTER_PORT.
TEST(MeetingPlace, TorchrunsOwnPortIsLeftToItsAgent) {
  Environment torchrun{{{"MASTER_ADDR", "node7"},
                        {"MASTER_PORT", "29500"},
                        {"TORCHELASTIC_RUN_ID", "a1"},
                        {"TORCHELASTIC_USE_AGENT_STORE", "True"}}};
  const MeetingPlace place = environment_place(torchrun);
  EXPECT_EQ(place.ports.size(), 8U);
  EXPECT_THAT(place.ports, ::testing::Not(::testing::Contains(29500)));
  torchrun.variables["TORCHELASTIC_RUN_ID"] = "a2";
  EXPECT_NE(environment_place(torchrun).token, place.token);
  EXPECT_NE(environment_place(torchrun).ports, place.ports);
  torchrun.variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_EQ(environment_place(torchrun).ports, std::vector<uint16_t>{29500});
}

TEST(MeetingPlace, SlurmStep) {
  Environment step{{{"SLURM_JOB_ID", "4711"},
                    {"SLURM_STEP_ID", "0"},
                    {"SLURM_STEP_NODELIST", "node[03-07,12]"}}};
  const std::optional<MeetingPlace> place = slurm_place(step);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->host, "node03");
  EXPECT_EQ(place->ports.size(), 8U);
  EXPECT_THAT(place->token, HasSubstr("4711.0"));
  step.variables["SLURM_STEP_ID"] = "1";
  EXPECT_NE(slurm_place(step)->ports, place->ports);
  step.variables["MASTER_ADDR"] = "login";
  step.variables["MASTER_PORT"] = "29500";
  EXPECT_EQ(to_string(*slurm_place(step)), "login:29500");
  EXPECT_FALSE(slurm_place(Environment{{{"SLURM_JOB_ID", "4711"}}}));
}

TEST(MeetingPlace, FirstHostOfSlurmsList) {
  EXPECT_EQ(first_host("node7"), "node7");
  EXPECT_EQ(first_host("a,b[1-2]"), "a");
  EXPECT_EQ(first_host("node[03-07,12],login1"), "node03");
  EXPECT_EQ(first_host("node[5]"), "node5");
  EXPECT_EQ(first_host("r[1-2]n[3-4],r9n9"), "r1n3");
  EXPECT_EQ(first_host("rack[1-2]-eth"), "rack1-eth");
  EXPECT_EQ(first_host("node[03"), "");
  EXPECT_EQ(first_host(""), "");
}

}  // namespace
}  // namespace lockstep::comm::meeting_place_test
