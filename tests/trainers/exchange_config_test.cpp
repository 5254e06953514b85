#include "engine/settings/exchange_config.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainers/options_of.h"
#include "trainers/config/config_from_flags.h"

namespace lockstep::trainers::exchange_config_test {
namespace {

using testing::options_of;
using testing::usage_error;

constexpr int64_t kMiB = int64_t{1} << 20;

ExchangeConfig config_of(const std::string& line) {
  return make_exchange_config(options_of(line));
}

TEST(ExchangeConfig, Defaults) {
  const ExchangeConfig config = config_of("");
  EXPECT_EQ(config.algorithm, Algorithm::kTree);
  EXPECT_EQ(config.transport, comm::Transport::kAuto);
  EXPECT_EQ(config.caps.first_bytes, kMiB);
  EXPECT_EQ(config.caps.bytes, 25 * kMiB);
  EXPECT_TRUE(config.overlap);
  EXPECT_EQ(config.wire, Dtype::kF32);
  EXPECT_EQ(config.predivide, 1);
  EXPECT_FALSE(config.zero_unused);
  EXPECT_EQ(config.check_ranks, 100);
}

TEST(ExchangeConfig, TakesOverEveryValue) {
  const ExchangeConfig config = config_of(
      "--algorithm star --transport shm --bucket-cap-mb 8 --first-bucket-mb 0.5 --no-overlap "
      "--fp16-allreduce --gradient-predivide-factor 4 --unused zero --check-ranks 7");
  EXPECT_EQ(config.algorithm, Algorithm::kStar);
  EXPECT_EQ(config.transport, comm::Transport::kShm);
  EXPECT_EQ(config.check_ranks, 7);
  const comm::ReducerOptions reducer = reducer_options(config, 3);
  EXPECT_EQ(reducer.caps.first_bytes, kMiB / 2);
  EXPECT_EQ(reducer.caps.bytes, 8 * kMiB);
  EXPECT_EQ(reducer.algorithm, Algorithm::kStar);
  EXPECT_FALSE(reducer.overlap);
  EXPECT_EQ(reducer.wire, Dtype::kF16);
  EXPECT_EQ(reducer.predivide, 4);
  EXPECT_EQ(reducer.micro_steps, 3);
  EXPECT_TRUE(reducer.zero_unused);
  EXPECT_FALSE(reducer.exchange);
}

TEST(ExchangeConfig, AnAskedForCapHoldsForTheFirstBucketToo) {
  EXPECT_EQ(config_of("--bucket-cap-mb 8").caps.first_bytes, 8 * kMiB);
  EXPECT_EQ(config_of("--bucket-cap-mb 25").caps.first_bytes, 25 * kMiB);
  EXPECT_EQ(config_of("--first-bucket-mb 2").caps.first_bytes, 2 * kMiB);
  EXPECT_EQ(config_of("--first-bucket-mb 2").caps.bytes, 25 * kMiB);
  EXPECT_EQ(config_of("--bucket-cap-mb 0").caps.bytes, 0);
}

TEST(ExchangeConfig, NamesAreTheFlags) {
  for (const auto& [algorithm, name] : kAlgorithmNames) {
    EXPECT_EQ(config_of(fmt::format("--algorithm {}", name)).algorithm, algorithm);
  }
  EXPECT_EQ(config_of("--transport auto").transport, comm::Transport::kAuto);
  EXPECT_EQ(config_of("--transport shm").transport, comm::Transport::kShm);
  EXPECT_EQ(config_of("--transport mpi").transport, comm::Transport::kMpi);
}

TEST(ExchangeConfig, WhatKeepsBitsAndReplicas) {
  EXPECT_TRUE(config_of("--algorithm tree").keeps_bits());
  EXPECT_TRUE(config_of("--algorithm star").keeps_bits());
  EXPECT_FALSE(config_of("--algorithm ring").keeps_bits());
  EXPECT_FALSE(config_of("--algorithm mpi").keeps_bits());
  EXPECT_FALSE(config_of("--algorithm none").keeps_bits());
  EXPECT_TRUE(config_of("--algorithm ring").keeps_replicas());
  EXPECT_FALSE(config_of("--algorithm none").keeps_replicas());
}

TEST(ExchangeConfig, MpisOwnSumNeedsMpi) {
  EXPECT_EQ(config_of("--algorithm mpi").transport, comm::Transport::kMpi);
  EXPECT_EQ(config_of("--algorithm mpi --transport mpi").transport, comm::Transport::kMpi);
}

TEST(ExchangeConfig, NcclSumsOnGpusAndNowhereElse) {
  EXPECT_EQ(config_of("").on_device, DeviceTransport::kHost);
  EXPECT_EQ(config_of("--device cuda").on_device, DeviceTransport::kAuto);
  EXPECT_EQ(config_of("--device cuda --algorithm star").on_device, DeviceTransport::kHost);
  EXPECT_EQ(config_of("--device cuda --transport shm").on_device, DeviceTransport::kHost);
  EXPECT_EQ(config_of("--device cuda --algorithm mpi").on_device, DeviceTransport::kHost);
  const ExchangeConfig tree = config_of("--device cuda --transport nccl");
  EXPECT_EQ(tree.on_device, DeviceTransport::kNccl);
  EXPECT_EQ(tree.transport, comm::Transport::kAuto);  // the transport for the ranks' rendezvous
  EXPECT_TRUE(tree.keeps_bits());
  const ExchangeConfig own = config_of("--device cuda --algorithm nccl --fp16-allreduce");
  EXPECT_EQ(own.on_device, DeviceTransport::kNccl);
  EXPECT_EQ(own.transport, comm::Transport::kAuto);
  EXPECT_EQ(own.algorithm, Algorithm::kLibrary);
  EXPECT_EQ(algorithm_name(own), "nccl");
  EXPECT_EQ(algorithm_name(config_of("--algorithm mpi")), "mpi");
  EXPECT_FALSE(own.keeps_bits());
  EXPECT_TRUE(own.keeps_replicas());
  const ExchangeConfig ring = config_of("--device cuda --transport nccl --algorithm ring");
  EXPECT_EQ(ring.on_device, DeviceTransport::kNccl);
  EXPECT_EQ(ring.algorithm, Algorithm::kRing);
  EXPECT_FALSE(ring.keeps_bits());
  EXPECT_EQ(config_of("--device cuda --algorithm ring").on_device, DeviceTransport::kAuto);
  EXPECT_EQ(config_of("--device cuda --algorithm star").on_device, DeviceTransport::kHost);
}

TEST(ExchangeConfig, NcclRefusesWhatItHasNot) {
  const auto refused = [](const std::string& line) {
    const auto error = usage_error([&] { config_of(line); });
    return error ? std::string(error->what()) : "accepted";
  };
  EXPECT_EQ(refused("--transport nccl"), "--transport nccl needs --device cuda");
  EXPECT_EQ(refused("--algorithm nccl --device cpu"), "--algorithm nccl needs --device cuda");
  EXPECT_EQ(refused("--device cuda --transport nccl --algorithm star"),
            "--transport nccl has no --algorithm star");
  EXPECT_EQ(refused("--device cuda --algorithm nccl --transport shm"),
            "--algorithm nccl and --transport shm contradict each other");
}

TEST(ExchangeConfig, IpcSumsOnGpusAsATree) {
  const ExchangeConfig ipc = config_of("--device cuda --transport ipc");
  EXPECT_EQ(ipc.on_device, DeviceTransport::kIpc);
  EXPECT_EQ(ipc.transport, comm::Transport::kAuto);
  EXPECT_TRUE(ipc.keeps_bits());
  const auto refused = [](const std::string& line) {
    const auto error = usage_error([&] { config_of(line); });
    return error ? std::string(error->what()) : "accepted";
  };
  EXPECT_EQ(refused("--transport ipc"), "--transport ipc needs --device cuda");
  EXPECT_EQ(refused("--device cuda --transport ipc --algorithm star"),
            "--transport ipc has no --algorithm star");
}

TEST(ExchangeConfig, ContradictionsAreRefused) {
  const auto refused = [](const std::string& line) {
    const auto error = usage_error([&] { config_of(line); });
    if (!error) return std::string("accepted");
    EXPECT_FALSE(error->why().empty());
    EXPECT_FALSE(error->hint().empty());
    return std::string(error->what());
  };
  EXPECT_EQ(refused("--algorithm mpi --transport shm"),
            "--algorithm mpi and --transport shm contradict each other");
  EXPECT_EQ(refused("--algorithm mpi --fp16-allreduce"),
            "--algorithm mpi and --fp16-allreduce contradict each other");
  EXPECT_EQ(refused("--algorithm none --check-ranks 5"),
            "--algorithm none and --check-ranks 5 contradict each other");
  EXPECT_EQ(refused("--algorithm none --check-ranks 0"), "accepted");
  EXPECT_EQ(refused("--algorithm none"), "accepted");
  EXPECT_EQ(refused("--algorithm ring --fp16-allreduce"), "accepted");
}

}  // namespace
}  // namespace lockstep::trainers::exchange_config_test
