#include <algorithm>
#include <numeric>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "comm/bucket.h"
#include "nn/convnet.h"

namespace lockstep::comm::bucket_plan_test {
namespace {

struct Size {
  size_t tensors;
  int64_t bytes;

  bool operator==(const Size&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Size& size) {
  return out << size.tensors << ":" << size.bytes;
}

std::vector<Size> layout(const std::vector<int64_t>& bytes, const BucketCaps& caps = {}) {
  std::vector<Size> sizes;
  for (const std::vector<size_t>& bucket : plan_buckets(bytes, caps)) {
    int64_t sum = 0;
    for (const size_t i : bucket) sum += bytes[i];
    sizes.push_back({bucket.size(), sum});
  }
  return sizes;
}

std::vector<int64_t> parameter_bytes(const nn::Module& model) {
  std::vector<int64_t> bytes;
  for (const Var& parameter : model.parameters()) {
    bytes.push_back(static_cast<int64_t>(parameter.value().nbytes()));
  }
  return bytes;
}

// The parameter sizes of torchvision's residual networks, in the order of parameters().
class ResNetParameters {
 public:
  ResNetParameters(bool bottleneck, const std::vector<int>& blocks) {
    const int64_t expansion = bottleneck ? 4 : 1;
    conv(3, 64, 7);
    int64_t in = 64;
    int64_t planes = 64;
    for (const int count : blocks) {
      const int64_t out = planes * expansion;
      for (int block = 0; block < count; ++block) {
        if (bottleneck) {
          conv(in, planes, 1);
          conv(planes, planes, 3);
          conv(planes, out, 1);
        } else {
          conv(in, planes, 3);
          conv(planes, planes, 3);
        }
        if (block == 0 && (planes != 64 || in != out)) conv(in, out, 1);  // downsample
        in = out;
      }
      planes *= 2;
    }
    add(in * 1000);  // fc
    add(1000);
  }

  std::vector<int64_t> bytes;

 private:
  void add(int64_t elements) { bytes.push_back(elements * 4); }
  void conv(int64_t in, int64_t out, int64_t kernel) {  // followed by its batch norm
    add(out * in * kernel * kernel);
    add(out);
    add(out);
  }
};

// Source of the layouts: PyTorch 2.9 itself for resnet50, and its rule for the others.
TEST(BucketPlan, OurModelsAreCutAsDdpCutsThem) {
  Mt19937 rng(42);
  const nn::Init init{rng};
  EXPECT_EQ(layout(parameter_bytes(nn::ConvNet(init))), (std::vector<Size>{{10, 116136}}));
  EXPECT_EQ(layout(parameter_bytes(nn::ToyNet(init))),
            (std::vector<Size>{{6, 16803880}, {16, 6206976}}));
}

TEST(BucketPlan, ResidualNetworksAreCutAsDdpCutsThem) {
  EXPECT_EQ(layout(ResNetParameters(false, {2, 2, 2, 2}).bytes),
            (std::vector<Size>{{2, 2052000}, {12, 28852224}, {48, 15853824}}));
  EXPECT_EQ(layout(ResNetParameters(true, {3, 4, 6, 3}).bytes),
            (std::vector<Size>{
                {2, 8196000}, {15, 31502336}, {12, 26255360}, {51, 26550272}, {81, 9724160}}));
  EXPECT_EQ(layout(ResNetParameters(false, {3, 4, 6, 3}).bytes).size(), 5U);
  EXPECT_EQ(layout(ResNetParameters(true, {3, 4, 23, 3}).bytes).size(), 8U);
  EXPECT_EQ(layout(ResNetParameters(true, {3, 8, 36, 3}).bytes).size(), 10U);
}

TEST(BucketPlan, NothingNeedsNoBucket) {
  EXPECT_TRUE(plan_buckets({}, {}).empty());
}

TEST(BucketPlan, OneByteMakesABucketOfEachTensor) {
  EXPECT_EQ(layout({4, 8, 12}, {.first_bytes = 1, .bytes = 1}),
            (std::vector<Size>{{1, 12}, {1, 8}, {1, 4}}));
}

TEST(BucketPlan, TheTensorThatReachesTheCapIsTheLast) {
  const BucketCaps caps{.first_bytes = 10, .bytes = 20};
  EXPECT_EQ(layout({1, 20, 1, 9, 9, 10}, caps), (std::vector<Size>{{1, 10}, {4, 39}, {1, 1}}));
}

RC_GTEST_PROP(BucketPlanLaw, EveryTensorOnceLastFirst, (std::vector<uint16_t> sizes)) {
  const std::vector<int64_t> bytes(sizes.begin(), sizes.end());
  const BucketCaps caps{.first_bytes = *rc::gen::inRange<int64_t>(1, 100000),
                        .bytes = *rc::gen::inRange<int64_t>(1, 200000)};
  std::vector<size_t> order;
  for (const auto& bucket : plan_buckets(bytes, caps)) {
    order.insert(order.end(), bucket.begin(), bucket.end());
  }
  std::vector<size_t> reversed(bytes.size());
  std::iota(reversed.rbegin(), reversed.rend(), size_t{0});
  RC_ASSERT(order == reversed);
}

RC_GTEST_PROP(BucketPlanLaw, ABucketIsFullAndWasNotBefore, (std::vector<uint16_t> sizes)) {
  const std::vector<int64_t> bytes(sizes.begin(), sizes.end());
  const BucketCaps caps{.first_bytes = *rc::gen::inRange<int64_t>(1, 100000),
                        .bytes = *rc::gen::inRange<int64_t>(1, 200000)};
  const auto buckets = plan_buckets(bytes, caps);
  for (size_t b = 0; b < buckets.size(); ++b) {
    const int64_t cap = b == 0 ? caps.first_bytes : caps.bytes;
    int64_t before = 0;
    for (const size_t i : buckets[b]) before += bytes[i];
    RC_ASSERT(b + 1 == buckets.size() || before >= cap);
    RC_ASSERT(before - bytes[buckets[b].back()] < cap);
  }
}

}  // namespace
}  // namespace lockstep::comm::bucket_plan_test
