// Batch norm over ranks: a group that spans them is one process on the joined batch.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "comm/shared/thread_ranks.h"
#include "nn/functional.h"
#include "nn/layers.h"
#include "tests/reference/batch_norm.h"
#include "tests/support/close.h"
#include "tests/support/doubles.h"
#include "tests/support/golden.h"
#include "tests/support/random_tensor.h"

namespace lockstep::nn::sync_batch_norm_test {
namespace {

using testing::close;
using testing::doubles;
using testing::random_tensor;
using testing::same_bits;
using testing::Tolerance;

// The whole batch and what belongs to the layer.
struct Problem {
  Tensor in, grad_out, weight, bias, running_mean, running_var;
  kernels::BatchNormParams params;
  float momentum = 0.1F;
  Tensor residual = {};  // undefined, or like in
};

Problem random_problem(int64_t images, Activation activation) {
  constexpr int64_t kChannels = 19;
  return {.in = random_tensor({images, kChannels, 3, 2}, 1, -1, 3),
          .grad_out = random_tensor({images, kChannels, 3, 2}, 2),
          .weight = random_tensor({kChannels}, 3),
          .bias = random_tensor({kChannels}, 4),
          .running_mean = random_tensor({kChannels}, 5),
          .running_var = random_tensor({kChannels}, 6, 1, 2),
          .params = {.activation = activation}};
}

using Counts = std::vector<std::vector<int64_t>>;  // [rank][local shard] images

int64_t images_of(const Counts& counts) {
  int64_t images = 0;
  for (const auto& rank : counts) images += std::accumulate(rank.begin(), rank.end(), int64_t{0});
  return images;
}

// One rank's part of the batch.
struct Part {
  Shards shards;
  int64_t first_image = 0;

  Tensor of(const Tensor& batch) const { return batch.slice(first_image, shards.images()); }
};

Part part_of(const Counts& counts, size_t rank, int64_t groups) {
  Part part{.shards = {.offsets = {0}, .total = 0, .groups = groups}};
  for (size_t r = 0; r < counts.size(); ++r) {
    for (const int64_t images : counts[r]) {
      if (r < rank) part.first_image += images;
      if (r == rank) part.shards.offsets.push_back(part.shards.offsets.back() + images);
    }
    const auto local = static_cast<int64_t>(counts[r].size());
    if (r < rank) part.shards.first += local;
    part.shards.total += local;
  }
  part.shards.step_images = images_of(counts);
  return part;
}

// Of the whole batch; weight and bias gradients are (shards, C), running statistics one per rank.
struct Result {
  Tensor out, grad_in, grad_weight, grad_bias;
  std::vector<Tensor> running_mean, running_var;
};

void put_rows(const Tensor& rows, int64_t first, Tensor& all) {
  Tensor place = all.slice(first, rows.shape()[0]);
  if (rows.numel() > 0) std::memcpy(place.bytes(), rows.bytes(), rows.nbytes());
}

Tensor copy_of(const Tensor& tensor) {
  Tensor copy = Tensor::empty(tensor.shape(), tensor.dtype());
  std::memcpy(copy.bytes(), tensor.bytes(), tensor.nbytes());
  return copy;
}

// A loss whose gradient with respect to `y` is grad_out.
Var loss_with_gradient(const Var& y, const Tensor& grad_out) {
  return record("loss",
                Tensor::zeros({y.shards().local()}, Dtype::kF32),
                {y},
                [grad_out](Stream&, const Tensor&, Grads& grads) {
                  put_rows(grad_out, 0, grads.overwrite(0));
                });
}

void run_rank(const Problem& p, const Part& part, size_t rank, Result& result) {
  Stream stream(Device::kCpu, 1 + static_cast<int>(rank % 2));
  Var x(part.of(p.in), make_batch(stream, part.shards));
  x.set_requires_grad(true);
  const Var weight(copy_of(p.weight), true);
  const Var bias(copy_of(p.bias), true);
  BatchNormState norm{
      weight, bias, {copy_of(p.running_mean), copy_of(p.running_var), p.momentum}, p.params};
  const Var residual = p.residual.defined() ? Var(part.of(p.residual), x.shared_batch()) : Var();
  const Var y = residual.defined() ? batch_norm({x}, norm, residual).value : batch_norm({x}, norm);
  loss_with_gradient(y, part.of(p.grad_out)).backward();

  put_rows(y.value(), part.first_image, result.out);
  put_rows(x.grad(), part.first_image, result.grad_in);
  put_rows(weight.grad(), part.shards.first, result.grad_weight);
  put_rows(bias.grad(), part.shards.first, result.grad_bias);
  result.running_mean[rank] = norm.running.mean;
  result.running_var[rank] = norm.running.var;
}

Result run(const Problem& p, const Counts& counts, int64_t groups = 1) {
  const int64_t shards = part_of(counts, 0, groups).shards.total;
  Result result{.out = Tensor::zeros(p.in.shape(), Dtype::kF32),
                .grad_in = Tensor::zeros(p.in.shape(), Dtype::kF32),
                .grad_weight = Tensor::zeros({shards, p.weight.numel()}, Dtype::kF32),
                .grad_bias = Tensor::zeros({shards, p.weight.numel()}, Dtype::kF32),
                .running_mean = std::vector<Tensor>(counts.size()),
                .running_var = std::vector<Tensor>(counts.size())};
  comm::spawn_ranks(static_cast<int>(counts.size()), [&](Communicator& ranks) {
    const auto rank = static_cast<size_t>(ranks.rank());
    Part part = part_of(counts, rank, groups);
    if (counts.size() > 1) part.shards.peers = &ranks;
    run_rank(p, part, rank, result);
  });
  return result;
}

std::vector<float> sum_of_rows(const Tensor& leaves) {
  std::vector<double> sum(static_cast<size_t>(leaves.shape()[1]));
  const std::vector<double> values = doubles(leaves);
  for (size_t i = 0; i < values.size(); ++i) sum[i % sum.size()] += values[i];
  return {sum.begin(), sum.end()};
}

class SyncBatchNorm : public ::testing::TestWithParam<Counts> {};

TEST_P(SyncBatchNorm, IsOneProcessOnTheJoinedBatch) {
  const Counts& counts = GetParam();
  const int64_t images = images_of(counts);
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kGelu}) {
    const Problem p = random_problem(images, activation);
    const Result got = run(p, counts);
    const Result want = run(p, {{images}});
    constexpr Tolerance kClose{.rel = 1e-6, .abs = 1e-6};
    EXPECT_TRUE(close(got.out.span<float>(), want.out.span<float>(), kClose));
    EXPECT_TRUE(close(got.grad_in.span<float>(), want.grad_in.span<float>(), kClose));
    const Tolerance sum = testing::f32_sum(images * 6);
    EXPECT_TRUE(close(sum_of_rows(got.grad_weight), want.grad_weight.span<float>(), sum));
    EXPECT_TRUE(close(sum_of_rows(got.grad_bias), want.grad_bias.span<float>(), sum));
    for (size_t rank = 0; rank < counts.size(); ++rank) {
      EXPECT_TRUE(
          close(got.running_mean[rank].span<float>(), want.running_mean[0].span<float>(), kClose));
      EXPECT_TRUE(
          close(got.running_var[rank].span<float>(), want.running_var[0].span<float>(), kClose));
    }
  }
}

TEST_P(SyncBatchNorm, MatchesTheReferenceOfTheJoinedBatch) {
  const Counts& counts = GetParam();
  const int64_t images = images_of(counts);
  const Problem p = random_problem(images, Activation::kRelu);
  const Result got = run(p, counts);
  const auto in = doubles(p.in);
  const auto weight = doubles(p.weight);
  const auto bias = doubles(p.bias);
  const double eps = p.params.eps;
  constexpr Tolerance kClose{.rel = 2e-6, .abs = 4e-6};
  const auto moments = reference::batch_norm_moments(in, weight.size());
  const auto out = reference::batch_norm_forward(in, weight, bias, eps, p.params.activation);
  const auto grads = reference::batch_norm_backward(
      in, doubles(p.grad_out), weight, bias, eps, p.params.activation);
  EXPECT_TRUE(close(got.out.span<float>(), out, kClose));
  EXPECT_TRUE(close(got.grad_in.span<float>(), grads.in, kClose));
  const Tolerance sum = testing::f32_sum(images * 6);
  EXPECT_TRUE(close(sum_of_rows(got.grad_weight), grads.weight, sum));
  EXPECT_TRUE(close(sum_of_rows(got.grad_bias), grads.bias, sum));
  const double momentum = p.momentum;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    EXPECT_TRUE(
        close(got.running_mean[rank].span<float>(),
              reference::batch_norm_running(doubles(p.running_mean), moments.mean, momentum),
              {1e-6, 1e-6}));
    EXPECT_TRUE(close(got.running_var[rank].span<float>(),
                      reference::batch_norm_running(
                          doubles(p.running_var), moments.variance(moments.count - 1), momentum),
                      {1e-6, 1e-6}));
  }
}

// The same shards on one rank: not close but equal.
TEST_P(SyncBatchNorm, HasTheBitsOfOneRankWithAllShards) {
  const Counts& counts = GetParam();
  const Problem p = random_problem(images_of(counts), Activation::kGelu);
  Counts one(1);
  for (const auto& rank : counts) one[0].insert(one[0].end(), rank.begin(), rank.end());
  const Result got = run(p, counts);
  const Result want = run(p, one);
  EXPECT_TRUE(same_bits(got.out, want.out));
  EXPECT_TRUE(same_bits(got.grad_in, want.grad_in));
  EXPECT_TRUE(same_bits(got.grad_weight, want.grad_weight));
  EXPECT_TRUE(same_bits(got.grad_bias, want.grad_bias));
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    EXPECT_TRUE(same_bits(got.running_mean[rank], want.running_mean[0]));
    EXPECT_TRUE(same_bits(got.running_var[rank], want.running_var[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(UnevenRanks,
                         SyncBatchNorm,
                         ::testing::Values(Counts{{5}, {3}},
                                           Counts{{0}, {2}},
                                           Counts{{4}, {0}, {7}},
                                           Counts{{1}, {6}, {2}, {5}},
                                           Counts{{0}, {0}, {9}, {0}},
                                           Counts{{1, 0}, {3, 4}},
                                           Counts{{3}, {0, 2}, {1, 4}}));

// PyTorch's batch norm of a whole batch is what its SyncBatchNorm gives over ranks.
TEST(SyncBatchNormGolden, IsPyTorchsOnTheJoinedBatch) {
  for (const testing::GoldenCase& golden : testing::golden_cases("batch_norm")) {
    SCOPED_TRACE(golden.name());
    const Problem p{.in = golden.tensor("input"),
                    .grad_out = golden.tensor("grad_out"),
                    .weight = golden.tensor("weight"),
                    .bias = golden.tensor("bias"),
                    .running_mean = golden.tensor("running_mean_before"),
                    .running_var = golden.tensor("running_var_before"),
                    .params = {.eps = static_cast<float>(golden.number("eps")),
                               .activation = golden.number("relu") != 0 ? Activation::kRelu
                                                                        : Activation::kNone},
                    .momentum = static_cast<float>(golden.number("momentum")),
                    .residual = golden.has("residual") ? golden.tensor("residual") : Tensor()};
    const int64_t images = p.in.shape()[0];
    // Far from zero the input itself carries f32's error, divided by the deviation.
    const double scale = golden.name() == "far_from_zero" ? 200 : 1;
    const Tolerance tolerance{.rel = scale * 1e-5, .abs = scale * 1e-5};
    for (const Counts& counts : {Counts{{images - 1}, {1}}, Counts{{1}, {0}, {images - 1}, {0}}}) {
      const Result got = run(p, counts);
      const auto expect = [&](std::span<const float> values, const char* name) {
        EXPECT_TRUE(close(values, golden.tensor(name).span<float>(), tolerance)) << name;
      };
      expect(got.out.span<float>(), "out");
      expect(got.grad_in.span<float>(), "grad_in");
      expect(sum_of_rows(got.grad_weight), "grad_weight");
      expect(sum_of_rows(got.grad_bias), "grad_bias");
      expect(got.running_mean.back().span<float>(), "running_mean");
      expect(got.running_var.back().span<float>(), "running_var");
    }
  }
}

// Three ranks, four shards, two groups: the first group spans ranks 0 and 1, rank 2 has the second.
TEST(SyncBatchNormGroups, EachGroupIsItsOwnBatchAndTheFirstKeepsTheStatistics) {
  const Counts counts = {{2}, {3}, {1, 4}};
  const Problem p = random_problem(10, Activation::kNone);
  const Result got = run(p, counts, 2);
  for (const int64_t group : {0, 1}) {
    Problem part = p;
    part.in = p.in.slice(group * 5, 5);
    part.grad_out = p.grad_out.slice(group * 5, 5);
    const Counts local = group == 0 ? Counts{{2, 3}} : Counts{{1, 4}};
    const Result want = run(part, local);
    EXPECT_TRUE(same_bits(got.out.slice(group * 5, 5), want.out));
    EXPECT_TRUE(same_bits(got.grad_in.slice(group * 5, 5), want.grad_in));
    EXPECT_TRUE(same_bits(got.grad_weight.slice(group * 2, 2), want.grad_weight));
    if (group == 1) continue;
    for (const size_t rank : {0U, 1U}) {
      EXPECT_TRUE(same_bits(got.running_mean[rank], want.running_mean[0]));
      EXPECT_TRUE(same_bits(got.running_var[rank], want.running_var[0]));
    }
  }
  EXPECT_TRUE(same_bits(got.running_mean[2], p.running_mean));
  EXPECT_TRUE(same_bits(got.running_var[2], p.running_var));
}

// Two ranks' view of one: counts exchanges and answers for the peer with this rank's own bytes.
class EchoingPeer : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    ++exchanges;
    std::ranges::copy(mine, all.begin());
    std::ranges::copy(mine, all.subspan(mine.size()).begin());
  }
  void barrier() override { refuse(); }
  void broadcast(std::span<std::byte>, int) override { refuse(); }
  std::unique_ptr<Work> start_all_reduce(const AllReduce&) override { refuse(); }
  void all_reduce_sum(std::span<float>) override { refuse(); }
  void all_reduce_sum(std::span<int64_t>) override { refuse(); }

  int exchanges = 0;

 private:
  [[noreturn]] static void refuse() { throw InternalError("[batch_norm] only gathers"); }
};

TEST(SyncBatchNormTraffic, OneExchangeForwardAndOneBackward) {
  const Problem p = random_problem(4, Activation::kRelu);
  EchoingPeer peer;
  Stream stream;
  Shards shards = Shards::single(4);
  shards.total = 2;
  shards.peers = &peer;
  Var x(p.in, make_batch(stream, shards));
  x.set_requires_grad(true);
  BatchNormState norm{Var(p.weight, true),
                      Var(p.bias, true),
                      {copy_of(p.running_mean), copy_of(p.running_var)},
                      p.params};
  const Var y = batch_norm({x}, norm);
  EXPECT_EQ(peer.exchanges, 1);
  loss_with_gradient(y, p.grad_out).backward();
  EXPECT_EQ(peer.exchanges, 2);
}

TEST(BatchNormMicroSteps, OnlyTheFirstOfAStepAdvancesRunningStatistics) {
  Stream stream;
  const Problem p = random_problem(6, Activation::kNone);
  Mt19937 rng(1);
  BatchNorm layer(Init{rng}, p.weight.numel());
  const auto state_after = [&](int64_t micro_step) {
    Shards shards = Shards::single(6);
    shards.micro_step = micro_step;
    (void)layer.forward(Var(p.in, make_batch(stream, shards)));
    std::vector<Tensor> buffers;
    for (const StateEntry& entry : layer.state()) {
      if (!entry.is_parameter) buffers.push_back(copy_of(entry.tensor));
    }
    return buffers;
  };
  const std::vector<Tensor> first = state_after(0);
  const std::vector<Tensor> second = state_after(1);
  const std::vector<Tensor> next_step = state_after(0);
  ASSERT_EQ(first.size(), 3U);  // running_mean, running_var, num_batches_tracked
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(same_bits(second[i], first[i])) << "buffer " << i;
    EXPECT_FALSE(same_bits(next_step[i], first[i])) << "buffer " << i;
  }
}

}  // namespace
}  // namespace lockstep::nn::sync_batch_norm_test
