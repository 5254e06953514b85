// Files that must be refused, each with its reason.
#include <ostream>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/safetensors.h"
#include "tests/support/temp_dir.h"

namespace lockstep::safetensors_malformed_test {
namespace {

using testing::TempDir;
using testing::write_text;

std::string framed(const std::string& header, size_t data_bytes) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  return bytes + header + std::string(data_bytes, 'x');
}

// A header of one tensor `t`.
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

// A header of two tensors of bytes.
std::string two(const std::string& first, const std::string& second) {
  const auto u8 = [](const std::string& name, const std::string& rest) {
    return "\"" + name + R"(":{"dtype":"U8",)" + rest + "}";
  };
  return "{" + u8("a", first) + "," + u8("b", second) + "}";
}

struct Malformed {
  const char* name;
  std::string bytes;
  const char* why;
};

void PrintTo(const Malformed& file, std::ostream* out) {
  *out << file.name;
}

class Refused : public ::testing::TestWithParam<Malformed> {};

TEST_P(Refused, WithItsReason) {
  const TempDir dir;
  write_text(dir / "file", GetParam().bytes);
  try {
    (void)read_safetensors(dir / "file");
    FAIL() << "read without complaint";
  } catch (const CheckpointError& error) {
    EXPECT_NE(error.why().find(GetParam().why), std::string::npos) << error.why();
    EXPECT_NE(std::string(error.what()).find((dir / "file").string()), std::string::npos);
  }
}

std::vector<Malformed> bad_frames() {
  const std::string good = entry("U8", "[1]", "[0,1]");
  return {
      {"Empty", "", "fewer than 8"},
      {"SevenBytes", std::string(7, '\0'), "fewer than 8"},
      {"LengthZero", std::string(8, '\0'), "does not begin with {"},
      {"LengthBeyondFile", framed(good, 1).substr(0, 30), "claims"},
      {"LengthAllOnes", std::string(8, '\xff') + good, "claims 18446744073709551615 bytes"},
      {"LengthAboveLimit", framed(good + std::string(size_t{17} << 20, ' '), 1), "above 16777216"},
      {"FirstByteBlank", framed(" " + good, 1), "does not begin with {"},
      {"FirstByteBracket", framed("[]", 0), "does not begin with {"},
      {"ByteOrderMark", framed("\xef\xbb\xbf" + good, 1), "does not begin with {"},
      {"PaddedWithNul", framed(good + std::string(1, '\0'), 1), "does not end with }"},
      {"PaddedWithNewline", framed(good + "\n", 1), "does not end with }"},
      {"OnlyBrace", framed("{", 0), "does not end with }"},
      {"TwoValues", framed("{}{}", 0), "not valid UTF-8 JSON"},
      {"InvalidUtf8", framed("{\"__metadata__\":{\"k\":\"\xff\"}}", 0), "not valid UTF-8 JSON"},
      {"Comment", framed("{/* */}", 0), "not valid UTF-8 JSON"},
      {"DataCutShort", framed(entry("F32", "[2]", "[0,8]"), 7), "cut short"},
      {"DataTrails", framed(good, 2), "1 bytes follow"},
      {"DataWithoutTensors", framed("{}", 1), "1 bytes follow"},
  };
}

std::string many_tensors(int count) {
  std::string header = "{";
  for (int i = 0; i < count; ++i) {
    header += "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)";
  }
  header.back() = '}';
  return header;
}

std::vector<Malformed> bad_structure() {
  const std::string u8 = R"({"dtype":"U8","shape":[],"data_offsets":[0,1]})";
  return {
      {"DuplicateTensor", framed(R"({"t":)" + u8 + R"(,"t":)" + u8 + "}", 1), "`t` appears twice"},
      {"DuplicateKeyInEntry",
       framed(R"({"t":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1),
       "key `dtype` appears twice"},
      {"DuplicateShape",
       framed(R"({"t":{"dtype":"U8","shape":[],"shape":[],"data_offsets":[0,1]}})", 1),
       "key `shape` appears twice"},
      {"DuplicateMetadata",
       framed(R"({"__metadata__":{},"__metadata__":{}})", 0),
       "__metadata__ appears twice"},
      {"DuplicateMetadataKey",
       framed(R"({"__metadata__":{"k":"1","k":"2"}})", 0),
       "key `k` appears twice"},
      {"MetadataNumber", framed(R"({"__metadata__":{"k":1}})", 0), "a string for metadata key `k`"},
      {"MetadataNull", framed(R"({"__metadata__":{"k":null}})", 0), "null where"},
      {"MetadataNested", framed(R"({"__metadata__":{"k":{}}})", 0), "an object where"},
      {"MetadataArray", framed(R"({"__metadata__":[]})", 0), "an array where"},
      {"UnknownKey",
       framed(R"({"t":{"dtype":"U8","shape":[],"data_offsets":[0,1],"strides":[]}})", 1),
       "unknown key `strides`"},
      {"MissingDtype", framed(R"({"t":{"shape":[],"data_offsets":[0,1]}})", 1), "is missing"},
      {"MissingOffsets", framed(R"({"t":{"dtype":"U8","shape":[1]}})", 1), "is missing"},
      {"TensorIsNumber", framed(R"({"t":1})", 0), "a number where the object of `t`"},
      {"DeepNesting",
       framed("{\"t\":" + std::string(5000, '[') + std::string(5000, ']') + "}", 0),
       "an array where"},
      {"NestedShape", framed(entry("U8", "[[1]]", "[0,1]"), 1), "an array where"},
      {"NameTraversal", framed(R"({"../t":)" + u8 + "}", 1), "tensor name `../t`"},
      {"NameEmpty", framed(R"({"":)" + u8 + "}", 1), "tensor name ``"},
      {"NameControl", framed(R"({"a\u001b[2J":)" + u8 + "}", 1), "tensor name `a\\x1b[2J`"},
      {"TooManyTensors", framed(many_tensors(100'001), 0), "more than 100000 tensors"},
      {"NameTooLong",
       framed("{\"" + std::string(257, 'n') + "\":" + u8 + "}", 1),
       "tensor name `nnn"},
  };
}

std::vector<Malformed> bad_numbers() {
  return {
      {"DtypeF64", framed(entry("F64", "[1]", "[0,8]"), 8), "dtype F64 is not supported"},
      {"DtypeF8", framed(entry("F8_E4M3", "[1]", "[0,1]"), 1), "dtype F8_E4M3 is not supported"},
      {"DtypeLowerCase", framed(entry("f32", "[1]", "[0,4]"), 4), "dtype f32 is not supported"},
      {"DtypeNumber",
       framed(R"({"t":{"dtype":1,"shape":[],"data_offsets":[0,1]}})", 1),
       "a number where dtype"},
      {"ShapeString", framed(entry("U8", R"("1")", "[0,1]"), 1), "a string where shape"},
      {"ShapeNegative", framed(entry("U8", "[-1]", "[0,1]"), 1), "a negative number"},
      {"ShapeMinusZero", framed(entry("U8", "[-0]", "[0,0]"), 0), "a negative number"},
      {"ShapeFraction", framed(entry("U8", "[1.0]", "[0,1]"), 1), "1.0 is not an integer"},
      {"ShapeExponent", framed(entry("U8", "[1e0]", "[0,1]"), 1), "1e0 is not an integer"},
      {"ShapeTooBig",
       framed(entry("U8", "[18446744073709551616]", "[0,1]"), 1),
       "is not an integer in range"},
      {"ShapeBoolean", framed(entry("U8", "[true]", "[0,1]"), 1), "a boolean where"},
      {"RankFive", framed(entry("U8", "[1,1,1,1,1]", "[0,1]"), 1), "more than 4 numbers in shape"},
      {"ProductOverflows",
       framed(entry("F32", "[4294967296,4294967296]", "[0,0]"), 0),
       "size overflows"},
      {"BytesOverflow",
       framed(entry("I64", "[2305843009213693952]", "[0,0]"), 0),
       "size overflows"},
      {"ProductOverflowsBesideZero",
       framed(entry("U8", "[0,4294967296,4294967296]", "[0,0]"), 0),
       "size overflows"},
      {"OneOffset", framed(entry("U8", "[1]", "[1]"), 1), "not two offsets"},
      {"ThreeOffsets",
       framed(entry("U8", "[1]", "[0,1,1]"), 1),
       "more than 2 numbers in data_offsets"},
      {"EndsBeforeBegin", framed(entry("U8", "[1]", "[1,0]"), 1), "ends before it begins"},
      {"SizeMismatch",
       framed(entry("F32", "[2]", "[0,4]"), 4),
       "4 bytes of data, but dtype and shape ask for 8"},
      {"GapAtStart", framed(entry("U8", "[1]", "[1,2]"), 2), "leaving a gap after byte 0"},
      {"Gap",
       framed(two(R"("shape":[1],"data_offsets":[0,1])", R"("shape":[1],"data_offsets":[2,3])"), 3),
       "leaving a gap after byte 1"},
      {"Overlap",
       framed(two(R"("shape":[2],"data_offsets":[0,2])", R"("shape":[2],"data_offsets":[1,3])"), 3),
       "overlapping byte 1"},
      {"SharedData",
       framed(two(R"("shape":[2],"data_offsets":[0,2])", R"("shape":[2],"data_offsets":[0,2])"), 2),
       "overlapping byte 0"},
      {"EmptyInside",
       framed(two(R"("shape":[2],"data_offsets":[0,2])", R"("shape":[0],"data_offsets":[1,1])"), 2),
       "overlapping byte 1"},
      {"EmptyBeyondEnd",
       framed(two(R"("shape":[2],"data_offsets":[0,2])", R"("shape":[0],"data_offsets":[9,9])"), 2),
       "leaving a gap after byte 2"},
  };
}

const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Frame, Refused, ::testing::ValuesIn(bad_frames()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Structure, Refused, ::testing::ValuesIn(bad_structure()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Numbers, Refused, ::testing::ValuesIn(bad_numbers()), name_of_case);

TEST(Accepted, AnyOrderBlanksAndSharedEmptyPlaces) {
  const TempDir dir;
  const std::string header = R"({ "b" :{"data_offsets":[1,2],"shape":[1],"dtype":"U8"},
    "a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
    "none":{"dtype":"I64","shape":[0],"data_offsets":[1,1]},
    "nil":{"dtype":"F16","shape":[2,0],"data_offsets":[1,1]}}   )";
  write_text(dir / "file", framed(header, 2));
  const Safetensors content = read_safetensors(dir / "file");
  EXPECT_EQ(content.tensors.size(), 4U);
  EXPECT_EQ(content.tensors.at("nil").shape(), Shape({2, 0}));
}

}  // namespace
}  // namespace lockstep::safetensors_malformed_test
