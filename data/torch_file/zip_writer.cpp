#include "data/torch_file/zip_writer.h"

#include <algorithm>
#include <cstdint>
#include <list>

#include <fmt/core.h>

#include "core/atomic_file.h"
#include "core/error.h"
#include "data/torch_file/zip_format.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kMaxZipBytes = uint64_t{0xffffffff};
constexpr uint16_t kVersion = 20;
constexpr uint16_t kUtf8 = 0x0800;
constexpr uint16_t kNewYear1980 = 0x0021;   // the same files at all times
constexpr uint16_t kPaddingField = 0x4246;  // "FB", as PyTorch calls it
constexpr size_t kFieldHeader = 4;

class ZipBytes {
 public:
  template <class T>
  ZipBytes& put(T value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), first, first + sizeof(T));
    return *this;
  }
  ZipBytes& text(const std::string& text) {
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), first, first + text.size());
    return *this;
  }
  ZipBytes& zeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  std::span<const std::byte> span() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::byte> bytes_;
};

// Writes the fields that a local header and the directory have in common.
void put_member(ZipBytes& to, const ZipPart& part, uint32_t crc, size_t extra) {
  const auto size = static_cast<uint32_t>(part.content.size());
  to.put(kVersion).put(kUtf8).put(zip::kPlain).put(uint16_t{0}).put(kNewYear1980);
  to.put(crc).put(size).put(size);
  to.put(static_cast<uint16_t>(part.name.size())).put(static_cast<uint16_t>(extra));
}

ZipBytes local_header(const ZipPart& part, uint32_t crc, uint64_t at) {
  const uint64_t bare = at + zip::kLocalHeaderBytes + part.name.size() + kFieldHeader;
  const uint64_t padding = (kAlignment - bare % kAlignment) % kAlignment;
  ZipBytes header;
  header.put(zip::kLocalHeader);
  put_member(header, part, crc, kFieldHeader + padding);
  header.text(part.name);
  header.put(kPaddingField).put(static_cast<uint16_t>(padding)).zeros(padding);
  return header;
}

void put_directory_entry(ZipBytes& directory, const ZipPart& part, uint32_t crc, uint64_t at) {
  directory.put(zip::kDirectoryEntry).put(kVersion);
  put_member(directory, part, crc, 0);
  directory.put(uint16_t{0});                   // comment
  directory.put(uint16_t{0});                   // disk
  directory.put(uint16_t{0}).put(uint32_t{0});  // attributes
  directory.put(static_cast<uint32_t>(at)).text(part.name);
}

ZipBytes end_of(size_t members, uint64_t directory_at, size_t directory_bytes) {
  const auto count = static_cast<uint16_t>(members);
  ZipBytes end;
  end.put(zip::kEnd).put(uint32_t{0}).put(count).put(count);
  end.put(static_cast<uint32_t>(directory_bytes)).put(static_cast<uint32_t>(directory_at));
  end.put(uint16_t{0});
  return end;
}

}  // namespace

void write_zip(const std::filesystem::path& path, const std::vector<ZipPart>& parts) {
  std::list<ZipBytes> headers;  // whose addresses stay
  std::vector<std::span<const std::byte>> content;
  ZipBytes directory;
  uint64_t at = 0;
  for (const ZipPart& part : parts) {
    const uint32_t crc = zip::crc_of(part.content);
    headers.push_back(local_header(part, crc, at));
    put_directory_entry(directory, part, crc, at);
    content.push_back(headers.back().span());
    content.push_back(part.content);
    at += headers.back().size() + part.content.size();
    if (at + directory.size() > kMaxZipBytes || parts.size() >= zip::kMembersIn64) {
      throw EnvironmentError(
          fmt::format("cannot write {}", path.string()),
          fmt::format("it would have more than 4 GiB or {} members", zip::kMembersIn64),
          "a .safetensors file instead");
    }
  }
  const ZipBytes end = end_of(parts.size(), at, directory.size());
  content.push_back(directory.span());
  content.push_back(end.span());
  write_file_atomically(path, content);
}

}  // namespace lockstep::data
