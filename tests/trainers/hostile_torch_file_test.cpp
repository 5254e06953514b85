// Files that torch.save would not write.

#include <cstring>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "core/error.h"
#include "core/mt19937.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "trainers/torch_file/pickled_tensor.h"
#include "trainers/torch_file/torch_file.h"
#include "trainers/torch_file/zip_reader.h"
#include "trainers/torch_file/zip_writer.h"

namespace lockstep::trainers::hostile_torch_file_test {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::read_text;
using testing::write_text;

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string u32(uint32_t value) {
  std::string text(4, '\0');
  std::memcpy(text.data(), &value, 4);
  return text;
}
std::string text(const std::string& value) {
  return "X" + u32(static_cast<uint32_t>(value.size())) + value;
}
std::string number(int32_t value) {
  return "J" + u32(static_cast<uint32_t>(value));
}

// Fields of the pickle of a tensor with one axis; pickled() gives its bytes.
struct PickledVector {
  std::string type = "torch\nFloatStorage";
  std::string key = "0";
  int32_t stored = 2;
  std::string offset = number(0);
  std::string extent = number(2);
  std::string stride = number(1);

  std::string pickled() const {
    return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "c" + type + "\n" +
           text(key) + text("cpu") + number(stored) + "tQ" + offset + extent + "\x85" + stride +
           "\x85\x89" + "ccollections\nOrderedDict\n)RtR";
  }
};

std::string dict_of(const std::string& items) {
  return "\x80\x02}(" + items + "u.";
}

class HostileTorchFile : public ::testing::Test {
 protected:
  // Returns the result of reading a file with this pickle. Storage "0" holds 1 and 2 in f32.
  std::string read(const std::string& pickle, const std::string& storage = kTwo) {
    write_zip(file_, {{"a/data.pkl", bytes(pickle)}, {"a/data/0", bytes(storage)}});
    return read();
  }
  std::string read() {
    try {
      read_torch_file(file_);
    } catch (const CheckpointError& error) {
      return format_error(error);
    }
    return "read";
  }
  std::string read(const PickledVector& vector) {
    return read(dict_of(text("w") + vector.pickled()));
  }
  // Returns the result of reading a golden file after `change` has modified its bytes.
  template <class Change>
  std::string read_changed(Change&& change) {
    std::string content = read_text(testing::golden_folder() / "torch_files/state_dict.pt");
    change(content);
    write_text(file_, content);
    return read();
  }

  inline static const std::string kTwo = "\0\0\x80\x3f\0\0\0\x40"s;
  const testing::TempDir dir_;
  const fs::path file_ = dir_ / "w.pt";
};

TEST_F(HostileTorchFile, AGoodOneIsRead) {
  EXPECT_EQ(read(PickledVector{}), "read");
  const Tensor tensor = read_torch_file(file_).tensors.at("w");
  EXPECT_EQ(tensor.span<float>()[1], 2);
}

TEST_F(HostileTorchFile, NoCodeIsRun) {
  const std::string touch = (dir_ / "touched").string();
  EXPECT_THAT(read("\x80\x02"s + "cos\nsystem\n(" + text("touch " + touch) + "tR."),
              AllOf(HasSubstr("it holds a 'os.system'"), HasSubstr("no code is run")));
  EXPECT_THAT(read("\x80\x02"s + "cbuiltins\neval\n(" + text("1") + "tR."),
              HasSubstr("'builtins.eval'"));
  EXPECT_FALSE(fs::exists(touch));
  EXPECT_THAT(read("\x80\x04\x8c\x02os\x8c\x06system\x93."), HasSubstr("protocol 4"));
  EXPECT_THAT(read("\x80\x02(ios\nsystem\n."), HasSubstr("opcode 0x69"));
  EXPECT_THAT(read("\x80\x02\x93."), HasSubstr("opcode 0x93"));
  EXPECT_THAT(read("\x80\x02"
                   "ctorch._utils\n_rebuild_tensor_v3\n."),
              HasSubstr("_rebuild_tensor_v3"));
  EXPECT_THAT(read("\x80\x02"
                   "ctorch\nload\n)R."),
              HasSubstr("'torch.load'"));
  EXPECT_THAT(read("\x80\x02"
                   "ctorch\nFloatStorage\n)R."),
              HasSubstr("it calls torch.FloatStorage"));
}

TEST_F(HostileTorchFile, BrokenPicklesAreRefused) {
  const std::string good = dict_of(text("w") + PickledVector{}.pickled());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_THAT(read(good.substr(0, length)), HasSubstr("cannot read weights")) << length;
  }
  for (const char* pickle : {"\x80\x02.",
                             "\x80\x02t.",
                             "\x80\x02\x85.",
                             "\x80\x02R.",
                             "\x80\x02)R.",
                             "\x80\x02))R.",
                             "\x80\x02NN.",
                             "\x80\x02(N.",
                             "\x80\x02h\x07.",
                             "\x80\x02q\x07.",
                             "\x80\x02)NNs.",
                             "\x80\x02}(Nu.",
                             "\x80\x02)Na.",
                             "\x80\x02)Nb.",
                             "\x80\x02)Q.",
                             "\x80\x02NQ.",
                             "\x80\x02X\xff\xff\xff\xff."}) {
    EXPECT_THAT(read(pickle), HasSubstr("cannot read weights")) << pickle;
  }
}

TEST_F(HostileTorchFile, DeepAndCircularValuesCostNothing) {
  EXPECT_THAT(read("\x80\x02)" + std::string(900'000, '\x85') + "."),
              HasSubstr("it holds a tuple"));
  EXPECT_THAT(read("\x80\x02)" + std::string(1'000'001, '\x85') + "."),
              HasSubstr("more than 1000000 values"));
  EXPECT_THAT(read("\x80\x02]q\x01h\x01" + "a."s), HasSubstr("it holds a list"));
  EXPECT_THAT(read(dict_of(text("w") + "}q\x01" + text("w") + "h\x01s")),
              HasSubstr("its 'w' is a dict"));
  EXPECT_THAT(read("\x80\x02}q\x01" + text("model") + "h\x01s."),
              HasSubstr("its 'model' is a dict"));
}

// The file holds a long key or shape once, and a few bytes request each further copy.
TEST_F(HostileTorchFile, LongKeysAndShapesAreRefusedBeforeTheyAreCopied) {
  EXPECT_THAT(read(PickledVector{.key = std::string(257, '0')}),
              HasSubstr("a storage's key is too long"));
  std::string nine = "(";
  for (int i = 0; i < 9; ++i) nine += number(1);
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") +
                             "ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(2) + "tQ" +
                             number(0) + nine + "t" + nine + "t\x89" +
                             "ccollections\nOrderedDict\n)RtR";
  EXPECT_THAT(read(dict_of(text("w") + tensor)), HasSubstr("a tensor has 9 axes, more than 8"));
}

TEST_F(HostileTorchFile, TensorsStayInTheirStorage) {
  EXPECT_THAT(read(PickledVector{.offset = number(1)}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.offset = number(-1)}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.extent = number(3)}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.extent = number(-1)}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.stride = number(2)}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.stride = number(-1)}), HasSubstr("'w' claims elements"));
  const std::string huge = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"s;
  EXPECT_THAT(read(PickledVector{.extent = huge}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.stride = huge}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.offset = huge}), HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.extent = number(1000), .stride = number(0)}),
              HasSubstr("'w' claims elements"));
  EXPECT_THAT(read(PickledVector{.stored = 1'000'000'000}),
              HasSubstr("'w' claims 1000000000 elements in a storage of 8 bytes"));
  EXPECT_THAT(read(PickledVector{.type = "torch\nLongStorage"}),
              HasSubstr("in a storage of 8 bytes"));
  EXPECT_THAT(read(PickledVector{.stored = -1}), HasSubstr("a negative size"));
}

TEST_F(HostileTorchFile, ShapesWhoseProductsOverflowAreRefused) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  PickledTensor tensor;
  tensor.storage.elements = 2;
  tensor.shape = {3, 0};
  tensor.strides = {1, 1};
  EXPECT_EQ(elements_of(tensor), 0);
  for (const std::vector<int64_t>& shape :
       {std::vector{kHuge, kHuge, int64_t{0}}, {0, kHuge, kHuge}, {-1, 0, 1}}) {
    tensor.shape = shape;
    tensor.strides = {1, 1, 1};
    EXPECT_FALSE(elements_of(tensor));
  }
}

TEST_F(HostileTorchFile, ManyTensorsOfOneStorageAreRefused) {
  std::string items;
  for (int i = 0; i < 2000; ++i) items += text("w" + std::to_string(i)) + PickledVector{}.pickled();
  const std::string pickle = dict_of(items);
  EXPECT_EQ(read(pickle), "read");  // the tensors are small compared to their names
  std::string long_storage(4'000'000, '\0');
  PickledVector vector{.stored = 1'000'000, .extent = number(1'000'000)};
  items.clear();
  for (int i = 0; i < 6; ++i) items += text("w" + std::to_string(i)) + vector.pickled();
  EXPECT_THAT(read(dict_of(items), long_storage), HasSubstr("the same bytes over and over"));
}

TEST_F(HostileTorchFile, PathsAreNamesAndNothingElse) {
  EXPECT_THAT(read(PickledVector{.key = "../../../etc/passwd"}), HasSubstr("are missing"));
  EXPECT_THAT(read(dict_of(text("../w") + PickledVector{}.pickled())),
              HasSubstr("a tensor has the name '../w'"));
  EXPECT_THAT(read(dict_of(text("w\x1b[2J") + PickledVector{}.pickled())),
              HasSubstr("a tensor has the name 'w\\x1b[2J'"));
  const std::string pickle = dict_of(text("w") + PickledVector{}.pickled());
  write_zip(file_, {{"../../a/data.pkl", bytes(pickle)}, {"../../a/data/0", bytes(kTwo)}});
  EXPECT_EQ(read(), "read");  // no file is unpacked
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), {}), 1);
}

TEST_F(HostileTorchFile, ZipFilesOfOthersAreRefused) {
  write_zip(file_, {{"readme.txt", bytes(kTwo)}});
  EXPECT_THAT(read(), HasSubstr("it has no data.pkl"));
  write_zip(file_, {{"a/data.pkl", bytes(kTwo)}, {"b/data.pkl", bytes(kTwo)}});
  EXPECT_THAT(read(), HasSubstr("more than one data.pkl"));
  write_zip(file_, {{"a/data.pkl", bytes(kTwo)}, {"a/data.pkl", bytes(kTwo)}});
  EXPECT_THAT(read(), HasSubstr("'a/data.pkl' twice"));
  write_zip(file_, {{"a/data.pkl", bytes(kTwo)}, {"a/constants.pkl", bytes(kTwo)}});
  EXPECT_THAT(read(), AllOf(HasSubstr("TorchScript"), HasSubstr("torch.jit.load")));
  const std::string big = "big";
  write_zip(file_, {{"a/data.pkl", bytes(kTwo)}, {"a/byteorder", bytes(big)}});
  EXPECT_THAT(read(), HasSubstr("not little-endian"));
}

TEST_F(HostileTorchFile, EveryCutIsSeen) {
  const size_t size = read_text(testing::golden_folder() / "torch_files/state_dict.pt").size();
  for (size_t length = 4; length < size; length += 61) {
    EXPECT_THAT(read_changed([&](std::string& content) { content.resize(length); }),
                HasSubstr("it is cut short"))
        << length;
  }
}

TEST_F(HostileTorchFile, AChangedByteOfAWeightIsSeen) {
  EXPECT_THAT(read_changed([](std::string& content) {
                const float value = 2 + 1.F / 64;  // an element of bn.weight
                const std::string pattern(reinterpret_cast<const char*>(&value), sizeof(value));
                content.at(content.find(pattern)) ^= 1;
              }),
              HasSubstr("is damaged: the CRC differs"));
}

TEST_F(HostileTorchFile, DamageNeverCrashes) {
  Mt19937 rng(7);
  int read_all = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string result = read_changed([&](std::string& content) {
      for (int k = 0; k < 3; ++k) {
        content[rng.next_u32() % content.size()] = static_cast<char>(rng.next_u32());
      }
    });
    read_all += result == "read" ? 1 : 0;
  }
  EXPECT_LT(read_all, 300);
}

// Sets a member's sizes in the zip directory.
void set_sizes(std::string& content, uint32_t stored, uint32_t size) {
  const size_t entry = content.find("PK\x01\x02");
  content.replace(entry + 20, 4, u32(stored));
  content.replace(entry + 24, 4, u32(size));
}

TEST_F(HostileTorchFile, HugeSizesAreRefusedBeforeTheyAreRead) {
  EXPECT_THAT(read_changed([](std::string& c) { set_sizes(c, 0xfffffff0, 0xfffffff0); }),
              HasSubstr("reaches beyond the end"));
  EXPECT_THAT(read_changed([](std::string& c) { set_sizes(c, 309, 0xfffffff0); }),
              HasSubstr("has two sizes"));
  EXPECT_THAT(read_changed([](std::string& c) {
                const size_t entry = c.find("PK\x01\x02");
                c[entry + 10] = 8;  // deflated
                set_sizes(c, 309, 0xfffffff0);
              }),
              HasSubstr("claims more than it can hold"));
  EXPECT_THAT(read_changed([](std::string& c) { c[c.find("PK\x01\x02") + 8] = 1; }),
              HasSubstr("is encrypted"));
  EXPECT_THAT(read_changed([](std::string& c) { c[c.find("PK\x01\x02") + 10] = 12; }),
              HasSubstr("is compressed by method 12"));
  EXPECT_THAT(read_changed([](std::string& c) { c.replace(c.size() - 10, 4, u32(0xfffffff0)); }),
              HasSubstr("reaches beyond the end"));
}

// A zip file with one deflated member, as zip(1) writes it.
std::string deflated_zip(const std::string& name, const std::string& content, uint32_t claimed) {
  std::string packed(content.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  const auto crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
  const std::string sizes = u32(crc) + u32(static_cast<uint32_t>(packed.size())) + u32(claimed) +
                            u32(static_cast<uint32_t>(name.size()));
  const std::string common = "\x14\0\0\0\x08\0\0\0\0\0"s + sizes;
  const std::string local = "PK\x03\x04" + common + name + packed;
  const std::string entry = "PK\x01\x02\x14\0"s + common + std::string(14, '\0') + name;
  return local + entry + "PK\x05\x06\0\0\0\0\1\0\1\0"s + u32(static_cast<uint32_t>(entry.size())) +
         u32(static_cast<uint32_t>(local.size())) + "\0\0"s;
}

TEST_F(HostileTorchFile, DeflatedMembersGiveWhatTheyClaim) {
  const std::string content(3'000'000, 'w');
  const auto size = static_cast<uint32_t>(content.size());
  const auto member = [&] {
    const ZipReader zip(file_);
    std::string result(zip.members().at("m").size, '\0');
    zip.read("m", std::as_writable_bytes(std::span(result)));
    return result;
  };
  write_text(file_, deflated_zip("m", content, size));
  EXPECT_EQ(member(), content);
  write_text(file_, deflated_zip("m", "", 0));
  EXPECT_EQ(member(), "");
  for (const uint32_t claimed : {size - 1, size + 1}) {
    write_text(file_, deflated_zip("m", content, claimed));
    EXPECT_THROW(member(), CheckpointError) << claimed;
  }
}

}  // namespace
}  // namespace lockstep::trainers::hostile_torch_file_test
