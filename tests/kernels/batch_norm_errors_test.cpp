#include <gtest/gtest.h>

#include "kernels/norm/batch_norm.h"

namespace lockstep::kernels::batch_norm_errors_test {
namespace {

Tensor f32(const Shape& shape) {
  return Tensor::zeros(shape, Dtype::kF32);
}

TEST(BatchNormErrors, InputsThatAreNoBatch) {
  Stream stream;
  const Shards shards = Shards::single(2);
  Tensor stats = f32({1, 7});
  EXPECT_THROW(batch_norm_shard_stats(stream, shards, f32({2, 3, 4}), stats), ShapeError);
  EXPECT_THROW(batch_norm_shard_stats(stream, shards, f32({2, 0}), stats), ShapeError);
  EXPECT_THROW(batch_norm_shard_stats(stream, shards, f32({2, 3, 0, 4}), stats), ShapeError);
  EXPECT_THROW(batch_norm_shard_stats(stream, shards, Tensor::zeros({2, 3}, Dtype::kI32), stats),
               DtypeError);
  try {
    batch_norm_shard_stats(stream, shards, f32({5, 3}), stats);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(),
                 "[batch_norm_shard_stats] shards: they cover 2 rows, the batch has 5");
  }
}

TEST(BatchNormErrors, ShardStatsAndMerge) {
  Stream stream;
  Tensor stats = f32({1, 6});
  try {
    batch_norm_shard_stats(stream, Shards::single(2), f32({2, 3}), stats);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "[batch_norm_shard_stats] stats: shape (1,6), expected (1,7)");
  }
  Tensor merged = f32({7});
  EXPECT_THROW(batch_norm_merge_stats(stream, f32({2, 6}), 1, merged), ShapeError);
  EXPECT_THROW(batch_norm_merge_stats(stream, f32({0, 7}), 1, merged), ShapeError);
  EXPECT_THROW(batch_norm_merge_stats(stream, f32({2, 9}), 1, merged), ShapeError);
  EXPECT_THROW(batch_norm_merge_stats(stream, f32({2, 7}), 0, merged), ShapeError);
}

TEST(BatchNormErrors, ForwardAndInference) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const Tensor in = f32({2, 3});
  const Tensor stats = f32({1, 7});
  const Tensor channel = f32({3});
  const Tensor wrong = f32({4});
  Tensor out = f32({2, 3});
  Tensor wrong_out = f32({3, 2});
  const auto forward = [&](const Tensor& s, const Tensor& w, const Tensor& b, Tensor& o) {
    batch_norm_forward(stream, shards, {in, s, w, b, {}, {}, o});
  };
  EXPECT_NO_THROW(forward(stats, channel, channel, out));
  EXPECT_THROW(forward(f32({2, 7}), channel, channel, out), ShapeError);
  EXPECT_THROW(forward(stats, wrong, channel, out), ShapeError);
  EXPECT_THROW(forward(stats, channel, wrong, out), ShapeError);
  EXPECT_THROW(forward(stats, channel, channel, wrong_out), ShapeError);
  EXPECT_THROW(
      batch_norm_inference(stream, shards, {in, wrong, channel, channel, channel, {}, {}, out}),
      ShapeError);
  EXPECT_THROW(
      batch_norm_inference(stream, shards, {in, channel, wrong, channel, channel, {}, {}, out}),
      ShapeError);
}

TEST(BatchNormErrors, Backward) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const Tensor in = f32({2, 3});
  const Tensor stats = f32({1, 7});
  const Tensor channel = f32({3});
  Tensor row = f32({1, 3});
  Tensor wrong_row = f32({2, 3});
  Tensor grad_in = f32({2, 3});
  const auto sums = [&](const Tensor& grad_out, Tensor& weight, Tensor& bias) {
    batch_norm_shard_sums(
        stream, shards, {in, {}, grad_out, stats, channel, channel, {}, nullptr, weight, bias});
  };
  EXPECT_NO_THROW(sums(in, row, row));
  EXPECT_THROW(sums(channel, row, row), ShapeError);
  EXPECT_THROW(sums(in, wrong_row, row), ShapeError);
  EXPECT_THROW(sums(in, row, wrong_row), ShapeError);
  const auto backward = [&](const Tensor& grad_out, const Tensor& weight, const Tensor& bias) {
    batch_norm_backward(
        stream, shards, {in, grad_out, stats, weight, bias, channel, channel, {}, grad_in});
  };
  EXPECT_NO_THROW(backward(in, row, row));
  EXPECT_THROW(backward(channel, row, row), ShapeError);
  EXPECT_THROW(backward(in, wrong_row, row), ShapeError);
  EXPECT_THROW(backward(in, row, wrong_row), ShapeError);
}

TEST(BatchNormErrors, ActivationsAreOfOneTypeAndAllElseIsF32) {
  Stream stream;
  const Shards shards = Shards::single(2);
  const auto f16 = [](const Shape& shape) { return Tensor::zeros(shape, Dtype::kF16); };
  const Tensor in = f16({2, 3});
  const Tensor wide = f32({2, 3});
  const Tensor stats = f32({1, 7});
  const Tensor channel = f32({3});
  Tensor out = f16({2, 3});
  Tensor wide_out = f32({2, 3});
  const auto forward = [&](const Tensor& s, const Tensor& w, const Tensor& residual, Tensor& o) {
    batch_norm_forward(stream, shards, {in, s, w, channel, residual, {}, o});
  };
  EXPECT_NO_THROW(forward(stats, channel, in, out));
  EXPECT_THROW(forward(stats, channel, in, wide_out), DtypeError);
  EXPECT_THROW(forward(stats, channel, wide, out), DtypeError);
  EXPECT_THROW(forward(stats, f16({3}), in, out), DtypeError);
  EXPECT_THROW(forward(f16({1, 7}), channel, in, out), DtypeError);
}

TEST(BatchNormErrors, DryDeclaresItsCost) {
  Stream stream(Device::kDry);
  const auto dry = [](const Shape& shape) {
    return Tensor::empty(shape, Dtype::kF32, Device::kDry);
  };
  const Shards shards = Shards::single(2);
  const Tensor in = dry({2, 3, 4, 5});
  const Tensor channel = dry({3});
  Tensor leaf = dry({1, 7});
  Tensor stats = dry({7});
  Tensor out = dry({2, 3, 4, 5});
  Tensor row = dry({1, 3});
  Tensor running = dry({3});
  const BatchNormParams params;
  batch_norm_shard_stats(stream, shards, in, leaf);
  batch_norm_merge_stats(stream, leaf, 20, stats);
  batch_norm_update_running(stream, stats, 20, 0.1F, running, running);
  Tensor none;
  batch_norm_forward(stream, shards, {in, leaf, channel, channel, none, params, out});
  batch_norm_shard_sums(
      stream, shards, {in, none, in, leaf, channel, channel, params, nullptr, row, row});
  batch_norm_backward(stream, shards, {in, in, leaf, row, row, channel, channel, params, out});
  batch_norm_inference(stream, shards, {in, channel, channel, channel, channel, none, params, out});
  const std::vector<int64_t> want_bytes = {480, 56, 76, 960, 960, 1440, 960};
  ASSERT_EQ(stream.ledger().size(), want_bytes.size());
  for (size_t i = 0; i < want_bytes.size(); ++i) {
    EXPECT_EQ(stream.ledger()[i].bytes, want_bytes[i]) << stream.ledger()[i].op;
  }
}

TEST(BatchNormErrors, OneCallForGroupsOfOneShard) {
  Stream stream;
  const Tensor in = f32({4, 3}), channel = f32({3});
  Tensor stats = f32({2, 7}), out = f32({4, 3}), leaf = f32({2, 3});
  BatchNormRunning running{f32({3}), f32({3})}, half{f32({3}), {}}, wrong{stats, stats};
  const auto forward = [&](const Shards& shards, BatchNormRunning* follows) {
    batch_norm_shard_forward(
        stream, shards, {in, {}, channel, channel, {}, follows, stats}, {}, out);
  };
  EXPECT_NO_THROW(forward(Shards::cut(4, 2, 2), &running));
  EXPECT_THROW(forward(Shards::cut(4, 2, 1), &running), ShapeError);  // a group of two shards
  EXPECT_THROW(forward(Shards::cut(4, 2, 2), &half), ShapeError);
  EXPECT_THROW(forward(Shards::cut(4, 2, 2), &wrong), ShapeError);
  const Shards uneven{.offsets = {0, 1, 4}, .total = 2, .groups = 2};
  EXPECT_NO_THROW(forward(uneven, nullptr));
  EXPECT_THROW(forward(uneven, &running), ShapeError);  // one value has no variance
  const auto backward = [&](const Shards& shards, Tensor& grad_in, const Tensor& addend = {}) {
    batch_norm_shard_backward(stream,
                              shards,
                              {in, {}, in, stats, channel, channel, {}, nullptr, leaf, leaf},
                              addend,
                              grad_in);
  };
  EXPECT_NO_THROW(backward(Shards::cut(4, 2, 2), out));
  EXPECT_THROW(backward(Shards::cut(4, 2, 1), out), ShapeError);
  EXPECT_THROW(backward(Shards::cut(4, 2, 2), leaf), ShapeError);
  EXPECT_THROW(backward(Shards::cut(4, 2, 2), out, in), ShapeError);  // and no grad_residual
}

}  // namespace
}  // namespace lockstep::kernels::batch_norm_errors_test
