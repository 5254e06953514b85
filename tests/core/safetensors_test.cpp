#include "core/safetensors.h"

#include <cstring>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/close.h"
#include "tests/support/temp_dir.h"

namespace lockstep::safetensors_test {
namespace {

namespace fs = std::filesystem;
using testing::read_text;
using testing::same_bits;
using testing::TempDir;

Tensor counting(const Shape& shape, Dtype dtype) {
  Tensor tensor = Tensor::empty(shape, dtype);
  for (size_t i = 0; i < tensor.nbytes(); ++i)
    tensor.bytes()[i] = static_cast<std::byte>(i * 37 + 1);
  return tensor;
}

Safetensors one_of_each() {
  Safetensors content;
  for (const Dtype dtype :
       {Dtype::kU8, Dtype::kF32, Dtype::kF16, Dtype::kBF16, Dtype::kI32, Dtype::kI64}) {
    const std::string name(name_of(dtype));
    content.tensors["scalar." + name] = counting({}, dtype);
    content.tensors["empty/" + name] = counting({3, 0, 2}, dtype);
    content.tensors["vector-" + name] = counting({7}, dtype);
    content.tensors["conv_" + name + ".weight"] = counting({2, 3, 1, 5}, dtype);
  }
  content.metadata = {{"format", "pt"}, {"text", "line\n\"quoted\" \xc3\xa9"}, {"", ""}};
  return content;
}

TEST(Safetensors, RoundTripKeepsEverything) {
  const TempDir dir;
  const Safetensors want = one_of_each();
  write_safetensors(dir / "a.safetensors", want);
  const Safetensors got = read_safetensors(dir / "a.safetensors");
  EXPECT_EQ(got.metadata, want.metadata);
  ASSERT_EQ(got.tensors.size(), want.tensors.size());
  for (const auto& [name, tensor] : want.tensors) {
    EXPECT_TRUE(same_bits(got.tensors.at(name), tensor)) << name;
  }
}

TEST(Safetensors, NoTensorsAtAll) {
  const TempDir dir;
  write_safetensors(dir / "a.safetensors", {});
  const Safetensors got = read_safetensors(dir / "a.safetensors");
  EXPECT_TRUE(got.tensors.empty());
  EXPECT_TRUE(got.metadata.empty());
}

TEST(Safetensors, BytesAreFixed) {
  const TempDir dir;
  Safetensors content;
  content.tensors["b"] = counting({2}, Dtype::kU8);
  content.tensors["a"] = counting({1}, Dtype::kU8);
  content.tensors["c"] = counting({1}, Dtype::kF32);
  content.metadata["k"] = "v";
  write_safetensors(dir / "a.safetensors", content);
  const std::string header =
      R"({"__metadata__":{"k":"v"},"c":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},)"
      R"("b":{"dtype":"U8","shape":[2],"data_offsets":[5,7]}})";
  const size_t padded = (header.size() + 7) / 8 * 8;
  const std::string want = std::string(1, static_cast<char>(padded)) + std::string(7, '\0') +
                           header + std::string(padded - header.size(), ' ') + "\x01\x26\x4b\x70" +
                           "\x01" + "\x01\x26";
  EXPECT_EQ(read_text(dir / "a.safetensors"), want);
}

TEST(Safetensors, TensorsAreAlignedToTheirElements) {
  const TempDir dir;
  write_safetensors(dir / "a.safetensors", one_of_each());
  const std::string bytes = read_text(dir / "a.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_LT(bytes.find("I64"), bytes.find("F32"));
  EXPECT_LT(bytes.find("I32"), bytes.find("BF16"));
  EXPECT_LT(bytes.find("F16"), bytes.find("U8"));
}

TEST(Safetensors, MetadataThatIsNotUtf8IsMended) {
  const TempDir dir;
  Safetensors content;
  content.metadata["path"] = "caf\xe9";
  write_safetensors(dir / "a.safetensors", content);
  EXPECT_EQ(read_safetensors(dir / "a.safetensors").metadata["path"], "caf\xef\xbf\xbd");
}

TEST(Safetensors, WriterRefusesWhatTheReaderWould) {
  const TempDir dir;
  for (const char* name : {"", "a b", "..", "a/../b", "__metadata__", "\n"}) {
    Safetensors content;
    content.tensors[name] = Tensor::zeros({1}, Dtype::kF32);
    EXPECT_THROW(write_safetensors(dir / "a.safetensors", content), InternalError) << name;
  }
  Safetensors undefined;
  undefined.tensors["a"] = Tensor();
  EXPECT_THROW(write_safetensors(dir / "a.safetensors", undefined), InternalError);
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(Safetensors, UnreadableFilesAreTheEnvironment) {
  const TempDir dir;
  const auto expect_why = [](const fs::path& path, const std::string& why) {
    try {
      (void)read_safetensors(path);
      FAIL() << path;
    } catch (const EnvironmentError& error) {
      EXPECT_EQ(error.why(), why);
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos);
    }
  };
  expect_why(dir / "missing", "No such file or directory");
  expect_why(dir.path(), "it is not a regular file");
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  expect_why(dir / "pipe", "it is not a regular file");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const TempDir dir;
  Safetensors content;
  content.tensors["weight"] = counting({3, 2}, Dtype::kF32);
  content.tensors["steps"] = counting({}, Dtype::kI64);
  write_safetensors(dir / "file", content);
  for (uintmax_t size = fs::file_size(dir / "file"); size > 0; --size) {
    fs::resize_file(dir / "file", size - 1);
    EXPECT_THROW((void)read_safetensors(dir / "file"), CheckpointError) << size - 1 << " bytes";
  }
}

}  // namespace
}  // namespace lockstep::safetensors_test
