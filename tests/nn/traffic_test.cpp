// Bytes that a training step of ResNet-50 moves for an image of 224x224, from the dry device's
// ledger, against two independent counts: pass by pass from the architecture, and the roofline
// model of a step with fused batch norm, 346 MB in f16.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/mt19937.h"
#include "nn/functional.h"
#include "nn/resnet.h"

namespace lockstep::nn::traffic_test {
namespace {

using Bytes = std::map<std::string, int64_t, std::less<>>;

// One forward and backward pass in f32, without the optimizer.
Bytes bytes_of_step(int64_t images) {
  Mt19937 rng(1);
  ResNet model(Init{rng, Device::kDry}, 50, {});
  Stream stream(Device::kDry);
  const Var x(Tensor::empty({images, 3, 224, 224}, Dtype::kF32, Device::kDry),
              make_batch(stream, Shards::single(images)));
  const Tensor labels = Tensor::empty({images}, Dtype::kI32, Device::kDry);
  softmax_cross_entropy(model.forward(x), labels).loss.backward();
  Bytes bytes;
  for (const LedgerEntry& entry : stream.ledger()) bytes[std::string(entry.op)] += entry.bytes;
  return bytes;
}

// What grows with the batch: weights and sums per channel drop out.
Bytes bytes_per_image() {
  Bytes bytes = bytes_of_step(3);
  const Bytes fewer = bytes_of_step(2);
  for (auto& [op, count] : bytes) count -= fewer.at(op);
  return bytes;
}

// Elements an image, counted from the architecture.
struct Elements {
  int64_t conv = 0;        // inputs and outputs of all convolutions
  int64_t stem_in = 0;     // the image needs no gradient
  int64_t normalized = 0;  // outputs of all convolutions: each goes into a batch norm
  int64_t pooled = 0;      // into the first block
  int64_t blocks_in = 0;   // each is used by the block's first convolution and by its shortcut
  int64_t residual = 0;    // outputs of the blocks
};

Elements elements_of_resnet50() {
  Elements count;
  const auto conv = [&](int64_t in, int64_t out) {
    count.conv += in + out;
    count.normalized += out;
  };
  count.stem_in = int64_t{3} * 224 * 224;
  conv(count.stem_in, int64_t{64} * 112 * 112);
  const int blocks[] = {3, 4, 6, 3};
  int64_t channels = 64;
  int64_t size = 56;
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t planes = int64_t{64} << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      const int64_t out_size = block == 0 && stage > 0 ? size / 2 : size;
      const int64_t in = channels * size * size;
      const int64_t first = planes * size * size;
      const int64_t second = planes * out_size * out_size;
      conv(in, first);
      conv(first, second);
      conv(second, 4 * second);
      if (block == 0) conv(in, 4 * second);
      if (count.blocks_in == 0) count.pooled = in;
      count.blocks_in += in;
      count.residual += 4 * second;
      channels = 4 * planes;
      size = out_size;
    }
  }
  return count;
}

class Traffic : public ::testing::Test {
 protected:
  // Values of `op` that are read or written for an image.
  int64_t values(std::string_view op) const {
    return bytes_.at(std::string(op)) / static_cast<int64_t>(sizeof(float));
  }

  const Bytes bytes_ = bytes_per_image();
  const Elements count_ = elements_of_resnet50();
};

TEST_F(Traffic, EachOpDeclaresItsPasses) {
  EXPECT_EQ(count_.normalized, 11'113'984);
  EXPECT_EQ(values("conv2d_forward"), count_.conv);
  EXPECT_EQ(values("conv2d_backward_weight"), count_.conv);
  EXPECT_EQ(values("conv2d_backward_data"), count_.conv - count_.stem_in - int64_t{64} * 112 * 112);
  EXPECT_EQ(values("batch_norm_shard_stats"), count_.normalized);
  EXPECT_EQ(values("batch_norm_forward"), 2 * count_.normalized + count_.residual);
  EXPECT_EQ(values("batch_norm_shard_sums"), 2 * count_.normalized + 2 * count_.residual);
  EXPECT_EQ(values("batch_norm_backward"), 3 * count_.normalized);
  // Where a fork is a batch norm's result, that reads the second gradient itself.
  EXPECT_EQ(values("batch_norm_shard_backward"), count_.blocks_in - count_.pooled);
  EXPECT_EQ(values("add"), 3 * count_.pooled);
}

// The model: convolutions read and write each tensor once in each direction; batch norm passes
// three times forward and five times backward, its residual and ReLU ride along, with one bit an
// element as ReLU's gate; gradients of a fork are added by the op that writes the second one.
TEST_F(Traffic, IsTheFusedModelsAndWhatTheTapeMovesBeside) {
  constexpr double kModelMegabytes = 346;
  constexpr double kValueBytes = 2;  // f16
  double total = 0;
  for (const auto& [op, count] : bytes_)
    total += static_cast<double>(count) / sizeof(float) * kValueBytes / 1e6;
  const auto megabytes = [](int64_t elements) {
    return static_cast<double>(elements) * kValueBytes / 1e6;
  };
  const double sum_of_fork = megabytes(2 * count_.pooled);  // add: three passes, not one
  const double gates = megabytes(count_.residual) -         // the block's output, not its bits
                       static_cast<double>(2 * count_.normalized) / 8 / 1e6;
  EXPECT_NEAR(sum_of_fork, 0.8, 0.1);
  EXPECT_NEAR(gates, 8.3, 0.1);
  // A percent: the model leaves open whether bits are kept where no ReLU follows, and counts u8
  // indices of the max-pool as such.
  EXPECT_NEAR(total - sum_of_fork - gates, kModelMegabytes, 0.01 * kModelMegabytes);
  EXPECT_NEAR(total, 356.4, 0.1);
}

}  // namespace
}  // namespace lockstep::nn::traffic_test
