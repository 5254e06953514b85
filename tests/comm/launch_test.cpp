#include "comm/launch.h"

#include <map>
#include <string>

#include <gmock/gmock.h>

#include "comm/connect.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace lockstep::comm::launch_test {
namespace {

using Environment = std::map<std::string, std::string>;

Launch launch_of(const Environment& environment) {
  return read_launch([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launch, PlainStartIsOneRankWithoutMpi) {
  const Launch launch = launch_of({{"PATH", "/bin"}});
  EXPECT_EQ(launch.launcher, Launcher::kNone);
  EXPECT_EQ(launch.rank, 0);
  EXPECT_EQ(launch.size, 1);
  EXPECT_FALSE(launch.needs_mpi());
  EXPECT_EQ(connect(launch).ranks->size(), 1);
}

TEST(Launch, OpenMpi) {
  const Environment environment = {{"OMPI_COMM_WORLD_RANK", "5"},
                                   {"OMPI_COMM_WORLD_SIZE", "8"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                   {"PMIX_RANK", "5"},
                                   {"SLURM_PROCID", "0"},
                                   {"SLURM_STEP_NUM_TASKS", "1"}};
  const Launch launch = launch_of(environment);
  EXPECT_EQ(launch.launcher, Launcher::kOpenMpi);
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.size, 8);
  EXPECT_EQ(launch.local_rank, 1);
  EXPECT_EQ(launch.local_size, 4);
  EXPECT_TRUE(launch.needs_mpi());
}

TEST(Launch, OneRankUnderMpirunNeedsNoMpi) {
  EXPECT_FALSE(
      launch_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).needs_mpi());
}

TEST(Launch, MpichWithoutLocalRanks) {
  const Launch launch = launch_of({{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}});
  EXPECT_EQ(launch.launcher, Launcher::kPmi);
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.size, 3);
  EXPECT_EQ(launch.local_rank, 2);
  EXPECT_EQ(launch.local_size, 3);
}

TEST(Launch, SlurmCountsTheStepNotTheBatchJob) {
  const Environment batch_script = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}};
  EXPECT_FALSE(launch_of(batch_script).needs_mpi());

  Environment step = batch_script;
  step["SLURM_PROCID"] = "3";
  step["SLURM_STEP_NUM_TASKS"] = "16";
  step["SLURM_LOCALID"] = "1";
  const Launch launch = launch_of(step);
  EXPECT_EQ(launch.launcher, Launcher::kSlurm);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.size, 16);
  EXPECT_EQ(launch.local_rank, 1);
}

TEST(Launch, PmixAloneHidesTheSize) {
  const Launch launch = launch_of({{"PMIX_RANK", "7"}});
  EXPECT_EQ(launch.rank, 7);
  EXPECT_EQ(launch.size, 0);
  EXPECT_EQ(launch.local_size, 1);
  EXPECT_TRUE(launch.needs_mpi());
}

TEST(Launch, PlainSrunNeedsNoMpiAndPmixDoes) {
  Environment step = {{"SLURM_PROCID", "3"},
                      {"SLURM_STEP_NUM_TASKS", "4"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_JOB_ID", "4711"},
                      {"SLURM_STEP_NODELIST", "node[03-04]"}};
  const Launch plain = launch_of(step);
  EXPECT_FALSE(plain.needs_mpi());
  ASSERT_TRUE(plain.place);
  EXPECT_EQ(plain.place->host, "node03");
  EXPECT_TRUE(plain.has_local_rank);
  step["PMIX_RANK"] = "3";
  EXPECT_TRUE(launch_of(step).needs_mpi());
  EXPECT_FALSE(launch_of(step).place);
}

TEST(Launch, TorchrunsRanksMeetWithoutMpi) {
  const Launch launch = launch_of({{"RANK", "1"},
                                   {"WORLD_SIZE", "2"},
                                   {"LOCAL_RANK", "1"},
                                   {"LOCAL_WORLD_SIZE", "2"},
                                   {"MASTER_ADDR", "node7"},
                                   {"MASTER_PORT", "29500"}});
  EXPECT_EQ(launch.launcher, Launcher::kEnvironment);
  EXPECT_FALSE(launch.needs_mpi());
  ASSERT_TRUE(launch.place);
  EXPECT_EQ(to_string(*launch.place), "node7:29500");
  EXPECT_FALSE(launch_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).place);
}

// Otherwise each of them would train alone, or be a rank twice.
TEST(Launch, TorchrunWithinAnotherLauncherCounts) {
  const Environment torchrun = {
      {"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}, {"TORCHELASTIC_RUN_ID", "none"}};
  for (const char* tasks : {"1", "2"}) {
    for (const auto& [rank, size] : {std::pair("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
                                     std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")}) {
      Environment environment = torchrun;
      environment.insert({{rank, "0"}, {size, tasks}, {"PMIX_RANK", "0"}});
      const Launch launch = launch_of(environment);
      EXPECT_EQ(launch.launcher, Launcher::kEnvironment) << rank << tasks;
      EXPECT_EQ(launch.rank, 1);
      EXPECT_EQ(launch.size, 4);
    }
  }
}

TEST(Launch, VariablesSetByHandCountInAShellOfSrun) {
  Environment shell = {
      {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}};
  EXPECT_EQ(launch_of(shell).size, 2);
  shell["SLURM_STEP_NUM_TASKS"] = "3";
  EXPECT_EQ(launch_of(shell).launcher, Launcher::kSlurm);
}

Launch launch_of(const Environment& environment, const LaunchOptions& options) {
  return read_launch(
      [&](const char* name) -> const char* {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      options);
}

TEST(Launch, ByHand) {
  const Launch launch = launch_of({}, {.url = "tcp://node7:1234", .rank = 2, .size = 4});
  EXPECT_EQ(launch.launcher, Launcher::kByHand);
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.size, 4);
  EXPECT_FALSE(launch.has_local_rank);
  EXPECT_EQ(to_string(*launch.place), "node7:1234");
  EXPECT_EQ(launch_of({}, {.rank = 0, .size = 2}).place->host, "127.0.0.1");
  const Environment mpirun = {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  EXPECT_FALSE(launch_of(mpirun, {.url = "file:///tmp/x"}).needs_mpi());
}

// Users may give main.py's single-node command line under mpirun and torchrun, too.
TEST(Launch, MainPysNodeCountsMeanNothingHere) {
  EXPECT_EQ(launch_of({}, {.url = "tcp://127.0.0.1:FREEPORT", .rank = 0, .size = 1}).size, 1);
  const Environment torchrun = {{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  EXPECT_EQ(launch_of(torchrun, {.rank = 0, .size = 1}).rank, 1);
}

TEST(Launch, OptionsThatContradictAreRefused) {
  const Environment torchrun = {{"RANK", "1"}, {"WORLD_SIZE", "3"}};
  EXPECT_THROW(launch_of({}, {.size = 2}), UsageError);
  EXPECT_THROW(launch_of({}, {.rank = 1}), UsageError);
  EXPECT_THROW(launch_of({}, {.rank = 2, .size = 2}), UsageError);
  EXPECT_THROW(launch_of(torchrun, {.rank = 2}), UsageError);
  EXPECT_THROW(launch_of(torchrun, {.size = 2}), UsageError);
  EXPECT_THROW(launch_of({{"PMIX_RANK", "1"}}, {.url = "tcp://node7:1"}), UsageError);
  EXPECT_EQ(launch_of({{"PMIX_RANK", "1"}}, {.url = "tcp://node7:1", .size = 2}).size, 2);
}

TEST(Launch, LocalRanksByHand) {
  const Environment torchrun = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}};
  EXPECT_EQ(launch_of(torchrun, {.local_rank = 1}).local_rank, 1);
  EXPECT_EQ(launch_of(torchrun, {.local_rank = 0}).local_rank, 1);
  EXPECT_THROW(launch_of(torchrun, {.local_rank = 2}), UsageError);
  EXPECT_THROW(launch_of({}, {.local_rank = 1}), UsageError);
  EXPECT_EQ(launch_of({}, {.local_rank = 0}).size, 1);
  EXPECT_EQ(launch_of({}, {.rank = 3, .size = 4, .local_rank = 1}).local_rank, 1);
}

TEST(Launch, TransportsThatCannotBeAreRefused) {
  const Launch torchrun = launch_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  EXPECT_THROW(connect(torchrun, {.transport = Transport::kMpi}), EnvironmentError);
  const Launch mpirun = launch_of({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_THROW(connect(mpirun, {.transport = Transport::kTcp}), EnvironmentError);
}

TEST(Launch, NonsenseIsNamed) {
  const Environment bad[] = {{{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}},
                             {{"PMI_RANK", "-1"}, {"PMI_SIZE", "2"}},
                             {{"PMI_RANK", "1x"}, {"PMI_SIZE", "2"}},
                             {{"PMI_RANK", ""}, {"PMI_SIZE", "2"}}};
  for (const Environment& environment : bad) {
    try {
      launch_of(environment);
      FAIL() << "no error for " << environment.at("PMI_RANK");
    } catch (const EnvironmentError& error) {
      EXPECT_STREQ(error.what(), "the launcher's variable PMI_RANK makes no sense");
      EXPECT_THAT(error.why(), ::testing::HasSubstr("expected 0..1"));
    }
  }
  EXPECT_THROW(launch_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}}), EnvironmentError);
}

// Otherwise each rank would train by itself.
TEST(Launch, HalfOfWhatRanksNeedIsRefused) {
  EXPECT_THROW(launch_of({{"WORLD_SIZE", "2"}}), EnvironmentError);
  EXPECT_THROW(launch_of({{"RANK", "1"}}), EnvironmentError);
  EXPECT_THROW(launch_of({}, {.url = "tcp://node7:1234"}), UsageError);
  EXPECT_EQ(launch_of({{"WORLD_SIZE", "1"}}).size, 1);
  EXPECT_EQ(launch_of({{"RANK", "0"}}).size, 1);
  EXPECT_EQ(launch_of({}, {.url = "env://"}).size, 1);
}

TEST(Launch, SharesCoresWhenRanksOutnumberThem) {
  const int cores = usable_cores();
  EXPECT_FALSE(shares_cores({.launcher = Launcher::kPmi, .size = cores, .local_size = cores}));
  EXPECT_TRUE(
      shares_cores({.launcher = Launcher::kPmi, .size = cores + 1, .local_size = cores + 1}));
  EXPECT_TRUE(shares_cores({.launcher = Launcher::kPmix, .size = 0}));
}

TEST(Launch, ATokenKeepsJobsApartAtOnePlace) {
  Environment ranks = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "29500"}};
  const std::string without = launch_of(ranks).place->token;
  ranks["LOCKSTEP_TOKEN"] = "";
  EXPECT_EQ(launch_of(ranks).place->token, without);
  ranks["LOCKSTEP_TOKEN"] = "one";
  const std::string one = launch_of(ranks).place->token;
  ranks["LOCKSTEP_TOKEN"] = "two";
  EXPECT_NE(launch_of(ranks).place->token, one);
  EXPECT_NE(one, without);
  EXPECT_EQ(launch_of(ranks).place->ports, std::vector<uint16_t>{29500});
}

}  // namespace
}  // namespace lockstep::comm::launch_test
