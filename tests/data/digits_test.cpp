#include <array>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/digest.h"
#include "data/drawn_dataset.h"

namespace lockstep::data::digits_test {
namespace {

using Image = std::array<uint8_t, 784>;

std::span<const std::byte> bytes_of(const Image& pixels) {
  return std::as_bytes(std::span(pixels));
}

Image read(const Dataset& dataset, int64_t i) {
  Image pixels{};
  dataset.read(i, pixels);
  return pixels;
}

std::string digest_of_first(const Dataset& dataset, int64_t images) {
  Digest digest;
  for (int64_t i = 0; i < images; ++i) digest.update(bytes_of(read(dataset, i)));
  return to_hex(digest.value());
}

TEST(Digits, HasMnistsShape) {
  const DatasetPair pair = open_digits();
  EXPECT_EQ(pair.train->size(), 60000);
  EXPECT_EQ(pair.test->size(), 10000);
  EXPECT_EQ(pair.train->image_shape(), (ImageShape{1, 28, 28}));
  EXPECT_EQ(pair.train->name(), "digits/train");
  EXPECT_EQ(pair.test->name(), "digits/test");
}

// The same on every machine, for ever: accuracies in documents and checkpoints depend on it.
TEST(Digits, BytesArePinned) {
  const DatasetPair pair = open_digits();
  const auto one = [](const Dataset& dataset, int64_t i) {
    Digest digest;
    digest.update(bytes_of(read(dataset, i)));
    return to_hex(digest.value());
  };
  EXPECT_EQ(one(*pair.train, 0), "fb545e3b56de3bed");
  EXPECT_EQ(one(*pair.train, 59999), "00a4afa84767dab2");
  EXPECT_EQ(one(*pair.test, 0), "ef93c9cc191ca5c7");
  EXPECT_EQ(digest_of_first(*pair.train, 1000), "151b0ec9b696ab94");
  EXPECT_EQ(digest_of_first(*pair.test, 1000), "1094c918f776e911");
  EXPECT_EQ(pair.train->digest(), "fc694f3b3e0f5e6e");
  EXPECT_EQ(pair.test->digest(), "342945e6e6b7a605");
}

TEST(Digits, ClassesAreBalanced) {
  const Digits digits(Digits::Split::kTest);
  std::array<int, 10> counts{};
  for (int64_t i = 0; i < digits.size(); ++i) ++counts.at(static_cast<size_t>(digits.label(i)));
  for (const int count : counts) EXPECT_NEAR(count, 1000, 100);
}

TEST(Digits, ASecondReadGivesTheSame) {
  const Digits digits(Digits::Split::kTest);
  const Image drawn = read(digits, 17);
  EXPECT_EQ(read(digits, 17), drawn);
  EXPECT_EQ(read(Digits(Digits::Split::kTest), 17), drawn);
  EXPECT_NE(read(digits, 18), drawn);
}

TEST(Digits, ThreadsMayReadTheSameImages) {
  const Digits digits(Digits::Split::kTest);
  std::array<std::string, 3> digests;
  std::vector<std::thread> threads;
  for (std::string& digest : digests) {
    threads.emplace_back([&digests, &digest, &digits] { digest = digest_of_first(digits, 300); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string want = digest_of_first(Digits(Digits::Split::kTest), 300);
  for (const std::string& digest : digests) EXPECT_EQ(digest, want);
}

TEST(ImageCache, MakesAnImageOnce) {
  ImageCache cache(3, 2);
  int made = 0;
  const auto get = [&](int64_t i) {
    std::array<uint8_t, 2> pixels{};
    cache.get(i, pixels, [&](std::span<uint8_t> out) {
      out[0] = static_cast<uint8_t>(i);
      out[1] = static_cast<uint8_t>(++made);
    });
    return pixels;
  };
  EXPECT_EQ(get(2), (std::array<uint8_t, 2>{2, 1}));
  EXPECT_EQ(get(0), (std::array<uint8_t, 2>{0, 2}));
  EXPECT_EQ(get(2), (std::array<uint8_t, 2>{2, 1}));
  EXPECT_EQ(made, 2);
}

}  // namespace
}  // namespace lockstep::data::digits_test
