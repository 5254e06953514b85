// The zip files that torch.save writes, and others.

#include "data/torch_file/zip_reader.h"

#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "core/mt19937.h"
#include "tests/data/made_torch_file.h"

namespace lockstep::data::zip_reader_test {
namespace {

using namespace std::string_literals;
using ::testing::AllOf;
using namespace made_torch_file;
using ::testing::HasSubstr;

using HostileZip = MadeTorchFile;

TEST_F(HostileZip, ZipFilesOfOthersAreRefused) {
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

TEST_F(HostileZip, EveryCutIsSeen) {
  const size_t size = read_text(golden_folder() / "torch_files/state_dict.pt").size();
  for (size_t length = 4; length < size; length += 61) {
    EXPECT_THAT(read_changed([&](std::string& content) { content.resize(length); }),
                HasSubstr("it is cut short"))
        << length;
  }
}

TEST_F(HostileZip, AChangedByteOfAWeightIsSeen) {
  EXPECT_THAT(read_changed([](std::string& content) {
                const float value = 2 + 1.F / 64;  // an element of bn.weight
                const std::string pattern(reinterpret_cast<const char*>(&value), sizeof(value));
                content.at(content.find(pattern)) ^= 1;
              }),
              HasSubstr("is damaged: the CRC differs"));
}

// Sets the CRCs in local headers, in the directory, or in both to 0.
void clear_crcs(std::string& content, bool local, bool directory) {
  const auto clear = [&](const std::string& mark, size_t offset) {
    for (size_t at = content.find(mark); at != std::string::npos; at = content.find(mark, at + 1)) {
      content.replace(at + offset, 4, u32(0));
    }
  };
  if (local) clear("PK\x03\x04", 14);
  if (directory) clear("PK\x01\x02", 16);
}

TEST_F(HostileZip, ACrcThatWasNotComputedIsNotCompared) {
  const std::string good = dict_of(text("w") + PickledVector{}.pickled());
  for (const bool changed : {false, true}) {
    for (const auto& [local, directory] : {std::pair(true, true), {true, false}, {false, true}}) {
      write_zip(file_, {{"a/data.pkl", bytes(good)}, {"a/data/0", bytes(kTwo)}});
      std::string content = read_text(file_);
      clear_crcs(content, local, directory);
      if (changed) content[content.find(kTwo)] ^= 1;
      write_text(file_, content);
      if (changed && !(local && directory)) {
        EXPECT_THAT(read(), HasSubstr("the CRC differs")) << local << directory;
      } else {
        EXPECT_EQ(read(), "read") << local << directory;
      }
    }
  }
}

TEST_F(HostileZip, DamageNeverCrashes) {
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

TEST_F(HostileZip, HugeSizesAreRefusedBeforeTheyAreRead) {
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

TEST_F(HostileZip, DeflatedMembersGiveWhatTheyClaim) {
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
}  // namespace lockstep::data::zip_reader_test
