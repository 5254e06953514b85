#include "core/thread_pool.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <stdexcept>

#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep::thread_pool_test {
namespace {

class Pools : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  int size() const { return std::get<0>(GetParam()); }
  // Polling workers that share a core wait for the scheduler in every round.
  int rounds() const { return std::get<1>(GetParam()) ? 30 : 1000; }
  ThreadPool pool_{std::get<0>(GetParam()), std::get<1>(GetParam())};
};

TEST_P(Pools, RunEachTaskOnceOnAWorkerOfTheirOwn) {
  for (const int64_t tasks : {0, 1, 2, 3, 7, 100, 1001}) {
    std::vector<int> runs(static_cast<size_t>(tasks));
    std::vector<int64_t> sums(static_cast<size_t>(size()));  // unsynchronized on purpose
    pool_.run(tasks, [&](int64_t task, int worker) {
      ++runs[static_cast<size_t>(task)];
      sums.at(static_cast<size_t>(worker)) += task;
    });
    EXPECT_EQ(runs, std::vector<int>(runs.size(), 1)) << tasks;
    EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), tasks * (tasks - 1) / 2);
  }
}

TEST_P(Pools, ATaskMeetsTheSameThreadInEveryRound) {
  constexpr int64_t kTasks = 13;
  std::vector<std::thread::id> first(kTasks);
  pool_.run(kTasks, [&](int64_t task, int) {
    first[static_cast<size_t>(task)] = std::this_thread::get_id();
  });
  EXPECT_EQ(first[0], std::this_thread::get_id());
  for (int round = 0; round < 10; ++round) {
    pool_.run(kTasks, [&](int64_t task, int) {
      EXPECT_EQ(first[static_cast<size_t>(task)], std::this_thread::get_id());
    });
  }
}

TEST_P(Pools, ManyRoundsSeeEachOthersWrites) {
  std::vector<int64_t> values(17);
  for (int round = 0; round < rounds(); ++round) {
    pool_.run(static_cast<int64_t>(values.size()),
              [&](int64_t task, int) { ++values[static_cast<size_t>(task)]; });
    ASSERT_EQ(values[16], round + 1);
  }
  EXPECT_EQ(values, std::vector<int64_t>(17, rounds()));
}

TEST_P(Pools, AnExceptionReachesTheCallerAndThePoolLives) {
  for (const int64_t tasks : {1, 20}) {
    for (const int64_t bad : {int64_t{0}, tasks / 2, tasks - 1}) {
      EXPECT_THROW(pool_.run(tasks,
                             [&](int64_t task, int) {
                               if (task == bad) throw std::out_of_range("bad");
                             }),
                   std::out_of_range);
      std::atomic<int64_t> count = 0;
      pool_.run(tasks, [&](int64_t, int) { ++count; });
      EXPECT_EQ(count, tasks);
    }
  }
}

TEST_P(Pools, AllThrowingStillGivesOneException) {
  EXPECT_THROW(pool_.run(20, [](int64_t, int) { throw std::out_of_range("bad"); }),
               std::out_of_range);
}

INSTANTIATE_TEST_SUITE_P(Sizes,
                         Pools,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5), ::testing::Bool()));

TEST(ThreadPool, NeedsAThread) {
  EXPECT_THROW(ThreadPool(0, false), InternalError);
}

TEST(ThreadPool, StartsAndStopsManyTimes) {
  std::atomic<int> runs = 0;
  for (int i = 0; i < 20; ++i) {
    ThreadPool pool(3, i % 2 == 0);
    if (i % 3 == 0) pool.run(3, [&](int64_t, int) { ++runs; });
  }
  EXPECT_EQ(runs, 7 * 3);
}

TEST(ThreadPool, HasALimit) {
  EXPECT_THROW(ThreadPool(kMaxThreads + 1, false), UsageError);
}

// The threads stay with the parent: waiting for them would never end.
TEST(ThreadPool, IsRefusedInAForkedChild) {
  auto pool = std::make_unique<ThreadPool>(3, false);
  EXPECT_EXIT(
      {
        try {
          pool->run(3, [](int64_t, int) {});
        } catch (const UsageError&) {
          pool.reset();
          std::_Exit(0);
        }
      },
      ::testing::ExitedWithCode(0),
      "");
  pool->run(3, [](int64_t, int) {});
}

TEST(UsableCores, IsAtLeastOne) {
  EXPECT_GE(usable_cores(), 1);
}

}  // namespace
}  // namespace lockstep::thread_pool_test
