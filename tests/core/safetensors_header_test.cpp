#include "core/safetensors_header.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/mt19937.h"

namespace lockstep::safetensors_header_test {
namespace {

constexpr uint64_t kDataBytes = 60;

std::string valid_header() {
  SafetensorsHeader header;
  header.metadata = {{"format", "pt"}, {"text", "a \"quoted\" \xc3\xa9"}};
  header.tensors["conv1.weight"] = {
      .dtype = Dtype::kF32, .shape = {2, 3, 1, 2}, .begin = 0, .end = 48};
  header.tensors["bn1.num_batches_tracked"] = {
      .dtype = Dtype::kI64, .shape = {}, .begin = 48, .end = 56};
  header.tensors["empty"] = {.dtype = Dtype::kU8, .shape = {3, 0}, .begin = 56, .end = 56};
  header.tensors["fc/bias"] = {.dtype = Dtype::kBF16, .shape = {2}, .begin = 56, .end = 60};
  return format_safetensors_header(header);
}

void edit(std::string& text, Mt19937& random) {
  constexpr std::string_view kPieces = "{}[]\",:0123456789eE.-\\u ";
  const size_t at = random.next_u32() % text.size();
  switch (random.next_u32() % 5) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ (1 << random.next_u32() % 8));
      break;
    case 1:
      text[at] = kPieces[random.next_u32() % kPieces.size()];
      break;
    case 2:
      text.erase(at, 1 + random.next_u32() % 8);
      break;
    case 3:
      text.insert(at, 1, kPieces[random.next_u32() % kPieces.size()]);
      break;
    default:
      text.insert(at, text, random.next_u32() % text.size(), 1 + random.next_u32() % 40);
  }
  if (text.empty()) text = "{";
}

// What the reader relies on to touch no byte outside the file and of another tensor.
void expect_sound(const SafetensorsHeader& header) {
  uint64_t total = 0;
  for (const auto& [name, entry] : header.tensors) {
    EXPECT_TRUE(is_tensor_name(name)) << name;
    EXPECT_LE(entry.end, kDataBytes);
    EXPECT_EQ(entry.end - entry.begin,
              static_cast<uint64_t>(entry.shape.numel()) * size_of(entry.dtype));
    total += entry.end - entry.begin;
  }
  EXPECT_EQ(total, kDataBytes);
}

TEST(SafetensorsHeader, FormatsAndParses) {
  const std::string text = valid_header();
  EXPECT_EQ(text.size() % 8, 0U);
  const SafetensorsHeader header = parse_safetensors_header(text, kDataBytes, "file");
  EXPECT_EQ(header.tensors.size(), 4U);
  EXPECT_EQ(header.metadata.size(), 2U);
  EXPECT_EQ(format_safetensors_header(header), text);
}

// Random edits never crash, and what is still accepted is sound. A sanitizer build watches memory.
TEST(SafetensorsHeader, EditedHeadersAreSoundOrRefused) {
  const std::string whole = valid_header();
  Mt19937 random(1);
  int refused = 0;
  constexpr int kRounds = 6000;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = whole;
    for (uint32_t edits = 1 + random.next_u32() % 3; edits > 0; --edits) edit(text, random);
    try {
      expect_sound(parse_safetensors_header(text, kDataBytes, "file"));
    } catch (const CheckpointError& error) {
      EXPECT_FALSE(error.why().empty());
      ++refused;
    }
  }
  EXPECT_GT(refused, kRounds / 2);
  EXPECT_LT(refused, kRounds);
}

}  // namespace
}  // namespace lockstep::safetensors_header_test
