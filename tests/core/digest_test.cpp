#include "core/digest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/random_tensor.h"

namespace lockstep::digest_test {
namespace {

using testing::random_tensor;
using Tensors = std::map<std::string, Tensor>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Digest, IsXxh3) {
  EXPECT_EQ(to_hex(digest(bytes_of(""))), "2d06800538d394c2");
  EXPECT_EQ(to_hex(digest(bytes_of("abc"))), "78af5f94892f3950");
}

TEST(Digest, HexKeepsLeadingZeros) {
  EXPECT_EQ(to_hex(0xabc), "0000000000000abc");
}

TEST(Digest, PiecesDoNotMatter) {
  const Tensor tensor = random_tensor({1000}, 1);
  const std::span<const std::byte> all(tensor.bytes(), tensor.nbytes());
  for (const size_t piece : {1, 7, 256, 1023}) {
    Digest pieces;
    for (size_t at = 0; at < all.size(); at += piece) {
      pieces.update(all.subspan(at, std::min(piece, all.size() - at)));
    }
    EXPECT_EQ(pieces.value(), digest(all)) << piece;
  }
}

TEST(Digest, GoesOnAfterValueAndAfterAMove) {
  Digest first;
  first.update("ab");
  (void)first.value();
  Digest second = std::move(first);
  second.update("c");
  EXPECT_EQ(second.value(), digest(bytes_of("abc")));
}

TEST(DigestOf, SeesNameDtypeShapeAndBytes) {
  const Tensor tensor = random_tensor({2, 6}, 1);
  Tensor other_bytes = random_tensor({2, 6}, 1);
  other_bytes.data<float>()[11] += 1;
  const std::vector<Tensors> different = {
      {},
      {{"a", tensor}},
      {{"b", tensor}},
      {{"a", tensor}, {"b", tensor}},
      {{"a", tensor.view({6, 2})}},
      {{"a", tensor.view({12})}},
      {{"a", other_bytes}},
      {{"a", Tensor::zeros({3}, Dtype::kF32)}},
      {{"a", Tensor::zeros({3}, Dtype::kI32)}},
      {{"a", Tensor::zeros({0}, Dtype::kF32)}},
      {{"a", Tensor::zeros({0, 2}, Dtype::kF32)}},
  };
  for (size_t i = 0; i < different.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(digest_of(different[i]), digest_of(different[j])) << i << " and " << j;
    }
  }
}

TEST(DigestOf, RankFourIsTakenInRowMajorOrder) {
  Tensor image = Tensor::zeros({1, 2, 1, 3}, Dtype::kU8);
  const std::vector<uint8_t> channels_last = {1, 4, 2, 5, 3, 6};
  std::copy(channels_last.begin(), channels_last.end(), image.data<uint8_t>());
  Digest want;
  want.update("u8");
  for (const uint64_t number : {4, 1, 2, 1, 3}) want.update(number);
  want.update("\x01\x02\x03\x04\x05\x06");
  EXPECT_EQ(digest_of(image), want.value());
}

TEST(DigestOf, RowMajorTensorsAreTakenAsTheyLie) {
  const Tensor tensor = random_tensor({2, 3, 4, 5}, 1);
  EXPECT_EQ(digest_of_row_major({{"w", to_row_major(tensor)}}), digest_of({{"w", tensor}}));
  EXPECT_NE(digest_of_row_major({{"w", tensor}}), digest_of({{"w", tensor}}));
}

TEST(DigestOf, OtherDevicesAreRefused) {
  EXPECT_THROW((void)digest_of(Tensor::empty({1}, Dtype::kF32, Device::kDry)), DeviceError);
}

}  // namespace
}  // namespace lockstep::digest_test
