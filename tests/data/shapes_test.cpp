#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/digest.h"
#include "data/drawn_dataset.h"
#include "data/figures.h"

namespace lockstep::data::shapes_test {
namespace {

using Image = std::array<uint8_t, 3072>;

Image read(const Dataset& dataset, int64_t i) {
  Image pixels{};
  dataset.read(i, pixels);
  return pixels;
}

std::string digest_of(const Dataset& dataset, int64_t begin, int64_t end) {
  Digest digest;
  for (int64_t i = begin; i < end; ++i) {
    const Image pixels = read(dataset, i);
    digest.update(std::as_bytes(std::span(pixels)));
  }
  return to_hex(digest.value());
}

TEST(Shapes, HasTwentyThousandColorImages) {
  const DatasetPair pair = open_shapes();
  EXPECT_EQ(pair.train->size(), 20000);
  EXPECT_EQ(pair.test->size(), 4000);
  EXPECT_EQ(pair.train->classes(), 10);
  EXPECT_EQ(pair.train->image_shape(), (ImageShape{3, 32, 32}));
  EXPECT_EQ(pair.train->name(), "shapes/train");
  EXPECT_EQ(pair.test->name(), "shapes/test");
}

// The same on every machine, for ever: accuracies in documents and checkpoints depend on it.
TEST(Shapes, BytesArePinned) {
  const DatasetPair pair = open_shapes();
  EXPECT_EQ(digest_of(*pair.train, 0, 1), "fd0d0ea81906a83e");
  EXPECT_EQ(digest_of(*pair.train, 19999, 20000), "bc3408bd6e3b209c");
  EXPECT_EQ(digest_of(*pair.test, 0, 1), "f1e9d6e6515b8b7b");
  EXPECT_EQ(digest_of(*pair.train, 0, 2000), "5d91423ad6dfc199");
  EXPECT_EQ(digest_of(*pair.test, 0, 2000), "dac89f8face912ac");
  EXPECT_EQ(pair.train->digest(), "e4059ea60528873e");
  EXPECT_EQ(pair.test->digest(), "534440119377c50a");
}

TEST(Shapes, ClassesAreBalanced) {
  const Shapes shapes(Shapes::Split::kTrain);
  std::array<int, 10> counts{};
  for (int64_t i = 0; i < shapes.size(); ++i) ++counts.at(static_cast<size_t>(shapes.label(i)));
  for (const int count : counts) EXPECT_NEAR(count, 2000, 150);
}

TEST(Shapes, ThreadsMayReadTheSameImages) {
  const Shapes shapes(Shapes::Split::kTest);
  std::array<std::string, 3> digests;
  std::vector<std::thread> threads;
  for (std::string& digest : digests) {
    threads.emplace_back([&digest, &shapes] { digest = digest_of(shapes, 0, 300); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string want = digest_of(Shapes(Shapes::Split::kTest), 0, 300);
  for (const std::string& digest : digests) EXPECT_EQ(digest, want);
}

// Color and place say nothing of the class: the mean image of a class, the simplest linear
// classifier, hardly beats chance.
TEST(Shapes, PixelsAloneDoNotTellTheClass) {
  constexpr int64_t kSeen = 4000;
  constexpr int64_t kAsked = 1000;
  const DatasetPair pair = open_shapes();
  std::vector<std::array<double, 3072>> means(10);
  std::array<int, 10> counts{};
  for (int64_t i = 0; i < kSeen; ++i) {
    const Image pixels = read(*pair.train, i);
    const auto label = static_cast<size_t>(pair.train->label(i));
    ++counts.at(label);
    for (size_t k = 0; k < pixels.size(); ++k) means[label][k] += pixels[k];
  }
  for (size_t c = 0; c < 10; ++c) {
    for (double& value : means[c]) value /= counts[c];
  }
  int64_t correct = 0;
  for (int64_t i = 0; i < kAsked; ++i) {
    const Image pixels = read(*pair.test, i);
    std::array<double, 10> distances{};
    for (size_t c = 0; c < 10; ++c) {
      for (size_t k = 0; k < pixels.size(); ++k) {
        const double difference = pixels[k] - means[c][k];
        distances[c] += difference * difference;
      }
    }
    const auto nearest = std::ranges::min_element(distances) - distances.begin();
    correct += nearest == pair.test->label(i) ? 1 : 0;
  }
  EXPECT_LT(correct, kAsked / 4);
}

// Signed by direction, in outline units squared.
int32_t area_of(Contour contour) {
  int32_t twice = 0;
  ShapePoint a = contour.back();
  for (const ShapePoint b : contour) {
    twice += a.x * b.y - a.y * b.x;
    a = b;
  }
  return twice / 2;
}

TEST(ShapeOutlines, KeepTheirBounds) {
  for (int32_t shape = 0; shape < 10; ++shape) {
    const std::span<const Contour> contours = shape_outline(shape);
    for (size_t i = 0; i < contours.size(); ++i) {
      EXPECT_LE(contours[i].size(), kMaxContourSize);
      for (const ShapePoint point : contours[i]) {
        EXPECT_LE(std::max(std::abs(point.x), std::abs(point.y)), 64);
      }
      EXPECT_EQ(area_of(contours[i]) > 0, i == 0) << shape;
    }
  }
}

}  // namespace
}  // namespace lockstep::data::shapes_test
